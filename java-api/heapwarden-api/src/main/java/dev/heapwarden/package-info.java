/**
 * The API of Heapwarden for programs: it is the agent that keeps a memory account for every service in one
 * JVM, and a program can tell it of its work and read accounts. {@link dev.heapwarden.Heapwarden} is where to start.
 *
 * <p>The agent defines the errors of a refusal in the boot class loader as well, and throws those
 * that the refused code sees: a {@code catch} clause means what it says, whatever loader this
 * package comes from.
 */
@NullMarked
package dev.heapwarden;

import org.jspecify.annotations.NullMarked;
