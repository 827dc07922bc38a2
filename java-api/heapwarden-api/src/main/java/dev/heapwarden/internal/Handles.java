package dev.heapwarden.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.Consumer;

/**
 * The methods of the agent's half of this API, which is in the boot class loader. Handles, because
 * a named module could not name a class there, and because they find the methods from every loader.
 *
 * <p>This class cannot be initialised where the agent is absent, or has other methods.
 */
final class Handles {
    static final Object HOME;
    static final MethodHandle ACTIVE;
    static final MethodHandle AGAIN;
    static final MethodHandle FRESH;
    static final MethodHandle CLOSE;
    static final MethodHandle CAPTURE;
    static final MethodHandle RESUME;
    static final MethodHandle INSIDE;
    static final MethodHandle MASK;
    static final MethodHandle UNMASK;
    static final MethodHandle UNMASKED_TWICE;
    static final MethodHandle CURRENT;
    static final MethodHandle ADMITS;
    static final MethodHandle ASK;
    static final MethodHandle PURSE;
    static final MethodHandle READ;
    static final MethodHandle FIGURES;
    static final MethodHandle WATCH;
    static final MethodHandle CLASSES;
    static final MethodHandle TRACE;
    static final MethodHandle SITES;
    static final MethodHandle SETTLE;
    static final MethodHandle LISTEN;
    static final MethodHandle SILENCE;

    /**
     * Not final, so that compilers leave it where it is: it is large, and a caller that had taken it
     * in would be too large itself to be taken into its callers, where the scope need not be made.
     */
    static MethodHandle enter;

    static {
        try {
            Class<?> bridge = Class.forName(Link.BRIDGE, true, null);
            HOME = find(bridge, "home", Object.class, ClassLoader.class)
                    .invoke(Handles.class.getClassLoader());
            ACTIVE = find(bridge, "active", boolean.class);
            AGAIN = find(bridge, "again", long.class, Object.class, String.class);
            enter = find(bridge, "enter", long.class, Object.class, String.class, boolean.class);
            FRESH = find(bridge, "fresh", long.class, Object.class, String.class, boolean.class);
            CLOSE = find(bridge, "close", void.class, long.class);
            CAPTURE = find(bridge, "capture", Object.class);
            RESUME = find(bridge, "resume", long.class, Object.class);
            INSIDE = find(bridge, "inside", long.class, Object.class);
            MASK = find(bridge, "mask", long.class);
            UNMASK = find(bridge, "unmask", boolean.class, long.class);
            UNMASKED_TWICE = find(bridge, "unmaskedTwice", void.class);
            CURRENT = find(bridge, "current", String.class);
            ADMITS = find(bridge, "admits", boolean.class, Object.class);
            ASK = find(bridge, "ask", Object.class, Object.class, String.class, String.class);
            PURSE = find(bridge, "purse", int.class);
            READ = find(bridge, "read", long[].class, String.class);
            FIGURES = find(bridge, "figures", long[].class, int.class);
            WATCH = find(bridge, "watch", void.class, int.class, boolean.class);
            CLASSES = find(bridge, "classes", Object[].class, int.class, int.class);
            TRACE = find(bridge, "trace", void.class, int.class, boolean.class);
            SITES = find(bridge, "sites", Object[].class, int.class, String.class, int.class);
            SETTLE = find(bridge, "settle", boolean.class, long.class);
            LISTEN = find(bridge, "listen", Object.class, String.class, Consumer.class);
            SILENCE = find(bridge, "silence", void.class, Object.class);
        } catch (Throwable thrown) {
            throw new ExceptionInInitializerError(thrown);
        }
    }

    private Handles() {}

    private static MethodHandle find(Class<?> in, String name, Class<?> result, Class<?>... taken)
            throws ReflectiveOperationException {
        return MethodHandles.publicLookup()
                .findStatic(in, name, MethodType.methodType(result, taken));
    }
}
