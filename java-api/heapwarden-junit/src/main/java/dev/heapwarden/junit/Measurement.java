package dev.heapwarden.junit;

import dev.heapwarden.internal.Link;
import java.lang.ref.Reference;
import java.util.concurrent.atomic.AtomicInteger;

/** Runs a test in a scope of its own and asks the agent what it took. */
final class Measurement {
    /** The scopes' names. Each test has a purse of its own, and so an account, for its classes. */
    private static final String PREFIX = "junit-";

    /** Then the names are used again: long after the accounts have ended. */
    private static final int NAMES = 10_000;

    private static final AtomicInteger COUNT = new AtomicInteger();

    /** How long refunds may take after a collection: long enough for a machine that is busy. */
    private static final long SETTLE_MILLIS = 60_000;

    /** So many that those with most bytes are among them, whichever kind of bytes counts. */
    private static final int MAX_CLASSES = 1_000;

    private Measurement() {}

    /** What to run. */
    interface Body<T> {
        T run() throws Throwable;
    }

    /** A result with the figures of what gave it. */
    static final class Measured<T> {
        final T result;
        final Figures figures;

        Measured(T result, Figures figures) {
            this.result = result;
            this.figures = figures;
        }
    }

    /**
     * Runs it on the calling thread.
     *
     * @throws IllegalStateException if the agent cannot say what it took
     * @throws Throwable what it throws
     */
    static <T> Measured<T> of(Body<T> body) throws Throwable {
        long token = Link.fresh(PREFIX + Math.floorMod(COUNT.getAndIncrement(), NAMES), true);
        // Holds the purse until the figures are read.
        Object scope = Link.capture();
        int purse = Link.purse();
        if (token == 0 || purse == 0) {
            Link.close(token);
            throw new IllegalStateException("the agent has no room for another scope");
        }
        Link.watch(purse, true);
        try {
            T result;
            try {
                result = body.run();
            } finally {
                Link.close(token);
            }
            return new Measured<>(result, figures(purse));
        } finally {
            Link.watch(purse, false);
            Reference.reachabilityFence(scope);
        }
    }

    private static Figures figures(int purse) {
        System.gc();
        if (!Link.settle(SETTLE_MILLIS)) {
            throw new IllegalStateException(
                    "what the test freed was not refunded within a minute: does the JVM obey"
                            + " System.gc() (-XX:+DisableExplicitGC)?");
        }
        long[] figures = Link.figures(purse);
        Object[] classes = Link.classes(purse, MAX_CLASSES);
        if (figures == null) {
            throw new IllegalStateException("the agent has no figures of the test");
        }
        return new Figures(figures, classes == null ? new Object[0] : classes);
    }
}
