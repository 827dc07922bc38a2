/**
 * Takes scopes along wherever Micrometer's context-propagation takes a thread's context: Reactor,
 * Spring, its executors. To be put on the class path or module path; there is nothing to call.
 */
@NullMarked
package dev.heapwarden.micrometer;

import org.jspecify.annotations.NullMarked;
