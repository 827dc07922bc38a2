package dev.heapwarden.junit;

import dev.heapwarden.internal.Link;
import java.lang.ref.Reference;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A scope of its own on the calling thread, and what the agent knows of it. Threads that are made
 * meanwhile are in it, too.
 */
final class Measurement implements AutoCloseable {
    /** The scopes' names. Each test has a purse of its own, and so an account, for its classes. */
    private static final String PREFIX = "junit-";

    /** Then the names are used again: long after the accounts have ended. */
    private static final int NAMES = 10_000;

    private static final AtomicInteger COUNT = new AtomicInteger();

    /** How long refunds may take after a collection: long enough for a machine that is busy. */
    private static final long SETTLE_MILLIS = 60_000;

    /** Places of a class at the most. */
    private static final int MAX_SITES = 3;

    /** How long the names of frames may take, and the time between two looks. */
    private static final long NAMING_NANOS = 3_000_000_000L;

    private static final long NAMING_PAUSE_MILLIS = 50;

    /** So many that those with most bytes are among them, whichever kind of bytes counts. */
    private static final int MAX_CLASSES = 1_000;

    private final long token;

    /** Holds the purse until the figures are read. */
    private final Object scope;

    private final int purse;

    private Measurement(long token, Object scope, int purse) {
        this.token = token;
        this.scope = scope;
        this.purse = purse;
    }

    /**
     * Enters the scope.
     *
     * @throws IllegalStateException if the agent has no room for it
     */
    static Measurement open() {
        long token = Link.fresh(PREFIX + Math.floorMod(COUNT.getAndIncrement(), NAMES), true);
        Object scope = Link.capture();
        int purse = Link.purse();
        if (token == 0 || purse == 0 || scope == null) {
            Link.close(token);
            throw new IllegalStateException("the agent has no room for another scope");
        }
        Link.watch(purse, true);
        return new Measurement(token, scope, purse);
    }

    /**
     * Returns the live objects after a collection, and the allocations. Its own are not counted.
     *
     * @throws IllegalStateException if the agent cannot say
     */
    Figures figures() {
        long aside = Link.resume(null);
        try {
            // Collects itself.
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
        } finally {
            Link.close(aside);
        }
    }

    /** Begins to take stacks of what is allocated, or stops that. */
    void trace(boolean on) {
        long aside = Link.resume(null);
        try {
            Link.trace(purse, on);
        } finally {
            Link.close(aside);
        }
    }

    /** Where what is live of a class was allocated since stacks are taken, the largest places first. */
    List<Site> sites(String className) throws InterruptedException {
        long aside = Link.resume(null);
        try {
            long begun = System.nanoTime();
            while (true) {
                Object[] answer = Link.sites(purse, className, MAX_SITES);
                List<Site> sites = answer == null ? List.of() : Site.of(answer);
                boolean named = sites.stream().allMatch(Site::isNamed);
                if (named || System.nanoTime() - begun > NAMING_NANOS) {
                    return sites;
                }
                Thread.sleep(NAMING_PAUSE_MILLIS);
            }
        } finally {
            Link.close(aside);
        }
    }

    /** Leaves the scope. */
    @Override
    public void close() {
        Link.close(token);
        Link.watch(purse, false);
        Reference.reachabilityFence(scope);
    }
}
