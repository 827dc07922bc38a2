package dev.heapwarden.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/**
 * Calls to what counts allocations by calling context; the agent defines it once a policy wants contexts.
 * Thread-safe. The methods are those of {@code java.lang.HeapwardenProfile}, which documents them.
 */
public final class Contexts {
    private static final String COUNTER = "java.lang.HeapwardenContexts";
    private static final String PROFILES = "java.lang.HeapwardenProfile";

    private Contexts() {}

    /** The methods. This class cannot be initialised before the agent has defined them. */
    private static final class Found {
        static final MethodHandle BEGIN;
        static final MethodHandle EVERY;
        static final MethodHandle FAILURE;
        static final MethodHandle READ;
        static final MethodHandle END;

        static {
            try {
                Class<?> in = Class.forName(PROFILES, true, null);
                BEGIN = find(in, "begin", Object.class);
                EVERY =
                        find(in, "every", void.class, Object.class, long.class, Runnable.class);
                FAILURE = find(in, "failure", Throwable.class, Object.class);
                READ = find(in, "read", Object[].class, Object.class);
                END = find(in, "end", void.class, Object.class);
            } catch (ReflectiveOperationException missing) {
                throw new ExceptionInInitializerError(missing);
            }
        }

        private Found() {}

        private static MethodHandle find(
                Class<?> in, String name, Class<?> result, Class<?>... taken)
                throws ReflectiveOperationException {
            return MethodHandles.publicLookup()
                    .findStatic(in, name, MethodType.methodType(result, taken));
        }
    }

    /** Begins a profile of the calling thread; null where none can be had. */
    public static @Nullable Object begin() {
        if (!Link.present()) {
            return null;
        }
        try {
            Class.forName(COUNTER, false, null);
            return (Object) Found.BEGIN.invokeExact();
        } catch (ClassNotFoundException | LinkageError absent) {
            // No policy has wanted contexts, or the agent is another version's.
            return null;
        } catch (Throwable thrown) {
            throw Link.rethrown(thrown);
        }
    }

    /** Calls back after each so many objects; never again for 0. */
    public static void every(Object profile, long objects, Runnable callback) {
        try {
            Found.EVERY.invokeExact(profile, objects, callback);
        } catch (Throwable thrown) {
            throw Link.rethrown(thrown);
        }
    }

    /** Returns the error that ended the callbacks; null if there was none. */
    public static @Nullable Throwable failure(Object profile) {
        try {
            return (Throwable) Found.FAILURE.invokeExact(profile);
        } catch (Throwable thrown) {
            throw Link.rethrown(thrown);
        }
    }

    /** The tree: parents, methods; nodes, types, and two amounts of each count. */
    public static Object[] read(Object profile) {
        try {
            return (Object[]) Found.READ.invokeExact(profile);
        } catch (Throwable thrown) {
            throw Link.rethrown(thrown);
        }
    }

    /** Ends a profile. */
    public static void end(Object profile) {
        try {
            Found.END.invokeExact(profile);
        } catch (Throwable thrown) {
            throw Link.rethrown(thrown);
        }
    }
}
