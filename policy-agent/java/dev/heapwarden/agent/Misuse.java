package dev.heapwarden.agent;

import java.util.ServiceConfigurationError;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Tells of programs that use the API wrongly, which otherwise goes well: counted by the agent, and a
 * warning with the stack in the program's own log, one for each kind in a minute.
 */
final class Misuse {
    /** A scope or mask was closed that was closed before. */
    static final int TWICE = 0;

    /** A scope was closed while one that was entered after it was open. */
    static final int ORDER = 1;

    /** A scope or mask was closed on a thread that had not opened it. */
    static final int THREAD = 2;

    /** More than {@link Cell#MAX_DEPTH} scopes would be open on one thread. */
    static final int DEPTH = 3;

    /** A name that no scope may have. */
    static final int NAME = 4;

    /** A service has more names than there is room for. */
    static final int FOLDED = 5;

    /** Not counted by the agent: a listener threw. */
    static final int LISTENER = 6;

    /** Not counted by the agent: there are too many listeners. */
    static final int LISTENERS = 7;

    private static final int COUNTED = 6;
    private static final long MINUTE_NANOS = 60_000_000_000L;

    private static final String[] TEXTS = {
        "a scope or mask was closed twice; the second time did nothing",
        "a scope was closed before one that was entered after it; the innermost open one pays",
        "a scope or mask was closed on a thread that did not open it; it is still open on its own",
        "more than 64 scopes are open on one thread; the one entered now does nothing",
        "a name was refused that no scope may have",
        "a service has too many scopes, or the agent has no room for more; this one is charged as"
                + " \"_other\"",
        "a listener of memory pressure threw",
        "there are too many listeners of memory pressure; this one hears nothing",
    };

    private final Agent agent;

    /** By kind: when the latest warning was logged; 0 for never. */
    private final AtomicLongArray logged = new AtomicLongArray(TEXTS.length);

    Misuse(Agent agent) {
        this.agent = agent;
    }

    /** Counts a misuse by the calling thread, and logs it if it is time. */
    void report(int kind) {
        report(kind, null);
    }

    /**
     * As {@link #report(int)}.
     *
     * @param cause what to log; null for the stack of the caller
     */
    void report(int kind, Throwable cause) {
        if (kind < COUNTED) {
            agent.misuse(kind);
        }
        if (due(kind, System.nanoTime())) {
            log(TEXTS[kind], cause == null ? new Throwable("the call") : cause);
        }
    }

    /** Whether a warning of this kind may be logged now. If so, the next one has to wait. */
    boolean due(int kind, long now) {
        long last = logged.get(kind);
        if (last != 0 && now - last < MINUTE_NANOS) {
            return false;
        }
        return logged.compareAndSet(kind, last, now == 0 ? 1 : now);
    }

    /** A log that is broken must not break its program: what it throws is dropped. */
    private static void log(String text, Throwable cause) {
        try {
            System.getLogger("dev.heapwarden").log(System.Logger.Level.WARNING, text, cause);
        } catch (RuntimeException | LinkageError | ServiceConfigurationError broken) {
            // No log is left to write to.
        }
    }
}
