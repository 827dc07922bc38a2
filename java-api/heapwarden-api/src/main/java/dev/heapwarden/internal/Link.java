package dev.heapwarden.internal;

import java.lang.invoke.MethodHandle;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Calls to the agent; without it, what stands for them. Thread-safe. The methods are those of {@code
 * dev.heapwarden.agent.Bridge}, which documents them.
 */
public final class Link {
    /** The class that the agent defines. */
    static final String BRIDGE = "dev.heapwarden.agent.Bridge";

    /** The account of what is nobody's, and of everything where the agent is absent. */
    private static final String UNACCOUNTED = "_unaccounted";

    private static final long SECOND_NANOS = 1_000_000_000L;

    /** The agent is there. Once true it stays so; threads may see that late. */
    private static boolean present;

    /** The agent is there, but not the one for this API. */
    private static boolean strange;

    private static long lookedNanos;

    static {
        look();
    }

    private Link() {}

    /** Whether the agent was there when it was last looked for. */
    public static boolean present() {
        return present;
    }

    /**
     * Whether the agent is there and scopes have effect. Looks for it again, at most once a second:
     * it may have been attached meanwhile.
     */
    public static boolean active() {
        if (!present && (strange || System.nanoTime() - lookedNanos < SECOND_NANOS || !look())) {
            return false;
        }
        try {
            return (boolean) Handles.ACTIVE.invokeExact();
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    private static synchronized boolean look() {
        if (present || strange) {
            return present;
        }
        try {
            Class.forName(BRIDGE, true, null);
            // Initialises the class, which finds all of its methods or fails.
            MethodHandle found = Handles.SILENCE;
            present = found != null;
        } catch (ClassNotFoundException absent) {
            // The usual case without the agent.
        } catch (LinkageError other) {
            strange = true;
            warn(other);
        }
        lookedNanos = System.nanoTime();
        return present;
    }

    private static void warn(LinkageError other) {
        try {
            System.getLogger("dev.heapwarden")
                    .log(
                            System.Logger.Level.WARNING,
                            "the agent is another version's: scopes have no effect; use"
                                    + " heapwarden-api and agent of one release",
                            other);
        } catch (Throwable broken) {
            // A logger that fails must not make a class initialiser fail that every scope needs.
        }
    }

    /** The token for {@link #close}; 0 where nothing was entered. The name is checked there. */
    public static long enter(String name, boolean passOn) {
        if (!present) {
            return 0;
        }
        try {
            if (!passOn) {
                long token = (long) Handles.AGAIN.invokeExact(Handles.HOME, name);
                if (token != 0) {
                    return token;
                }
            }
            return (long) Handles.enter.invokeExact(Handles.HOME, name, passOn);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** As {@link #enter}, in a purse that no other scope of this name has. */
    public static long fresh(String name, boolean passOn) {
        if (!present) {
            return 0;
        }
        try {
            return (long) Handles.FRESH.invokeExact(Handles.HOME, name, passOn);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Closes a scope. */
    public static void close(long token) {
        if (token == 0) {
            return;
        }
        try {
            Handles.CLOSE.invokeExact(token);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** The scope that the calling thread is in; null for none. */
    public static @Nullable Object capture() {
        if (!present) {
            return null;
        }
        try {
            return (Object) Handles.CAPTURE.invokeExact();
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Enters what was captured; null: no scope. The token is for {@link #close}. */
    public static long resume(@Nullable Object captured) {
        if (!present) {
            return 0;
        }
        try {
            return (long) Handles.RESUME.invokeExact(captured);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** The calling thread does the work of a probe that was let in. The token is for {@link #close}. */
    public static long inside(Object probe) {
        try {
            return (long) Handles.INSIDE.invokeExact(probe);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Begins a masked section; 0 where the agent is absent. */
    public static long mask() {
        if (!present) {
            return 0;
        }
        try {
            return (long) Handles.MASK.invokeExact();
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Ends a masked section. False if the calling thread did not begin it. */
    public static boolean unmask(long token) {
        if (token == 0) {
            return true;
        }
        try {
            return (boolean) Handles.UNMASK.invokeExact(token);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Reports that a masked section was ended again. */
    public static void unmaskedTwice() {
        if (present) {
            try {
                Handles.UNMASKED_TWICE.invokeExact();
            } catch (Throwable thrown) {
                throw rethrown(thrown);
            }
        }
    }

    /** The name of the account that pays for the calling thread. */
    public static String current() {
        if (!present) {
            return UNACCOUNTED;
        }
        try {
            String name = (String) Handles.CURRENT.invokeExact();
            return name == null ? UNACCOUNTED : name;
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Whether the account that pays for the calling thread takes new work. */
    public static boolean admits() {
        if (!present) {
            return true;
        }
        try {
            return (boolean) Handles.ADMITS.invokeExact(Handles.HOME);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Asks for a request; null if it is let in. See the bridge for the other answers. */
    public static @Nullable Object ask(String method, String path) {
        if (!present) {
            return null;
        }
        try {
            return (Object) Handles.ASK.invokeExact(Handles.HOME, method, path);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** The purse of the calling thread's scope; 0 for none. */
    public static int purse() {
        if (!present) {
            return 0;
        }
        try {
            return (int) Handles.PURSE.invokeExact();
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Figures of an account; null where there is none. */
    public static long @Nullable [] read(String account) {
        if (!present) {
            return null;
        }
        try {
            return (long[]) Handles.READ.invokeExact(account);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Figures of a purse, read now; null where there is none. */
    public static long @Nullable [] figures(int purse) {
        if (!present) {
            return null;
        }
        try {
            return (long[]) Handles.FIGURES.invokeExact(purse);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Begins or ends to note a purse's peak. */
    public static void watch(int purse, boolean on) {
        if (present) {
            try {
                Handles.WATCH.invokeExact(purse, on);
            } catch (Throwable thrown) {
                throw rethrown(thrown);
            }
        }
    }

    /** The largest classes of a purse: name, live bytes, live objects, allocated bytes, name... */
    public static @Nullable Object @Nullable [] classes(int purse, int most) {
        if (!present) {
            return null;
        }
        try {
            return (Object[]) Handles.CLASSES.invokeExact(purse, most);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Begins or ends to take stacks of what a purse is charged. */
    public static void trace(int purse, boolean on) {
        if (present) {
            try {
                Handles.TRACE.invokeExact(purse, on);
            } catch (Throwable thrown) {
                throw rethrown(thrown);
            }
        }
    }

    /** Where a class of a purse was allocated: frames, share in thousandths, frames... */
    public static @Nullable Object @Nullable [] sites(int purse, String type, int most) {
        if (!present) {
            return null;
        }
        try {
            return (Object[]) Handles.SITES.invokeExact(purse, type, most);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Waits until what died before is refunded; false on time-out. */
    public static boolean settle(long millis) {
        if (!present) {
            return true;
        }
        try {
            return (boolean) Handles.SETTLE.invokeExact(millis);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Registers a listener; null where it hears nothing. */
    public static @Nullable Object listen(@Nullable String account, Consumer<Object[]> receiver) {
        if (!present) {
            return null;
        }
        try {
            return (Object) Handles.LISTEN.invokeExact(account, receiver);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** Ends what {@link #listen} began. */
    public static void silence(Object subscription) {
        try {
            Handles.SILENCE.invokeExact(subscription);
        } catch (Throwable thrown) {
            throw rethrown(thrown);
        }
    }

    /** The other half declares no checked exception: what comes is thrown on as it is. */
    static RuntimeException rethrown(Throwable thrown) {
        return Link.<RuntimeException>asIs(thrown);
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T asIs(Throwable thrown) throws T {
        throw (T) thrown;
    }
}
