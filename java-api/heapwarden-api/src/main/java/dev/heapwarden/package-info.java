/**
 * What a program can see of Heapwarden, the agent that keeps a memory account for every service in
 * one JVM.
 *
 * <p>The agent defines these classes in the boot class loader, so that every class loader sees the
 * same ones, also those that look into themselves first.
 */
package dev.heapwarden;
