/**
 * Memory limits for tests that run on JUnit 5 (from 5.10) or 6: {@link
 * dev.heapwarden.junit.MaxLive @MaxLive} and {@link dev.heapwarden.junit.MaxAllocated @MaxAllocated};
 * {@link dev.heapwarden.junit.NoLeak @NoLeak} runs a test again and again, and lets nothing grow.
 * Where the JVM has no agent, the tests that carry one are skipped, and say what to add.
 */
@NullMarked
package dev.heapwarden.junit;

import org.jspecify.annotations.NullMarked;
