package dev.heapwarden.agent;

/**
 * Binds the native methods of the classes that count allocations. The JVM warns of code that binds methods
 * of java.base, unless it is called by a class of the boot loader.
 */
final class Binder {
    private Binder() {}

    /** Returns whether they are bound. */
    static boolean bind() {
        return bindNow();
    }

    /** As {@link #bind}, of the class that counts by contexts. */
    static boolean bindContexts() {
        return bindContextsNow();
    }

    private static native boolean bindNow();

    private static native boolean bindContextsNow();
}
