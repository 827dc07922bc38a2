/** The agent that Maven has brought, in the JVM of a build's tests. */
package dev.heapwarden.examples.build;
