package dev.heapwarden.agent;

/**
 * Binds the native methods of the class that counts allocations. The JVM warns of code that binds methods
 * of java.base, unless it is called by a class of the boot loader.
 */
final class Binder {
    private Binder() {}

    /** Returns whether they are bound. */
    static boolean bind() {
        return bindNow();
    }

    private static native boolean bindNow();
}
