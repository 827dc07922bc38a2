/**
 * The way to the agent. For Heapwarden's own modules: not an API, and no release promises to keep
 * it.
 */
@NullMarked
package dev.heapwarden.internal;

import org.jspecify.annotations.NullMarked;
