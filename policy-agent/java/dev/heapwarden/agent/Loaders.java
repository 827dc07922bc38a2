package dev.heapwarden.agent;

import java.lang.ref.WeakReference;

/** The JVM's own loaders, which stand for no service. */
final class Loaders {
    /** Taken for an absent context loader too. */
    static final ClassLoader SYSTEM = ClassLoader.getSystemClassLoader();

    private static final ClassLoader PLATFORM = ClassLoader.getPlatformClassLoader();
    private static final WeakReference<ClassLoader> WEAK_SYSTEM = new WeakReference<>(SYSTEM);
    private static final WeakReference<ClassLoader> WEAK_PLATFORM = new WeakReference<>(PLATFORM);

    private Loaders() {}

    /** Whether this is no service's loader. */
    static boolean plain(ClassLoader loader) {
        return loader == null || loader == SYSTEM || loader == PLATFORM;
    }

    /** The thread's context loader, the system's where there is none. */
    static ClassLoader context(Thread thread) {
        ClassLoader loader = thread.getContextClassLoader();
        return loader == null ? SYSTEM : loader;
    }

    /** A shared reference to one of the plain loaders but null. */
    static WeakReference<ClassLoader> weakly(ClassLoader plain) {
        return plain == SYSTEM ? WEAK_SYSTEM : WEAK_PLATFORM;
    }
}
