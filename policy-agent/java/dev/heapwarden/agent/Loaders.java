package dev.heapwarden.agent;

import java.lang.ref.WeakReference;

/** The JVM's own loaders, which stand for no service. */
final class Loaders {
    /** Taken for an absent context loader too. */
    static final ClassLoader SYSTEM = ClassLoader.getSystemClassLoader();

    private static final ClassLoader PLATFORM = ClassLoader.getPlatformClassLoader();
    private static final WeakReference<ClassLoader> WEAK_SYSTEM = new WeakReference<>(SYSTEM);
    private static final WeakReference<ClassLoader> WEAK_PLATFORM = new WeakReference<>(PLATFORM);

    /** The loader of a program that has asked for a request of its own. One is enough: a JVM has one program. */
    private static volatile WeakReference<ClassLoader> asking;

    private Loaders() {}

    /** Whether a program with this loader has asked for a request itself. */
    static boolean asksItself(ClassLoader loader) {
        WeakReference<ClassLoader> known = asking;
        return known != null && known.refersTo(loader);
    }

    /** A program with this loader asks for its requests itself. */
    static void asks(ClassLoader loader) {
        if (loader != null && !asksItself(loader)) {
            asking = new WeakReference<>(loader);
        }
    }

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
