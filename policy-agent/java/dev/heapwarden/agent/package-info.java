/**
 * The part of the Java API that is one for the whole JVM, whatever loaders have copies of the rest.
 * The agent defines it in the boot loader.
 */
package dev.heapwarden.agent;
