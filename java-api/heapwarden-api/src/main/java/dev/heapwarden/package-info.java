/**
 * What a program can tell Heapwarden, the agent that keeps a memory account for every service in one
 * JVM, and what it can see of it. {@link dev.heapwarden.Heapwarden} is where to start.
 *
 * <p>The agent defines the errors of a refusal in the boot class loader as well, and throws those
 * that the refused code sees: a {@code catch} clause means what it says, whatever loader this
 * package comes from.
 */
@NullMarked
package dev.heapwarden;

import org.jspecify.annotations.NullMarked;
