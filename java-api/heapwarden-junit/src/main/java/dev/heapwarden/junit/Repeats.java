package dev.heapwarden.junit;

import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;

/** How often a test is run to see whether it leaks. Immutable. */
final class Repeats {
    private static final int MAX_RUNS = 10_000;

    /** Runs that are watched: of one series. */
    final int runs;

    /** Runs before, the test's own first one included. */
    final int warmUp;

    /** Bytes that may stay of each run, of each class. */
    final long allowedBytes;

    Repeats(int runs, int warmUp, long allowedBytes) {
        this.runs = runs;
        this.warmUp = warmUp;
        this.allowedBytes = allowedBytes;
    }

    /**
     * Those of the test or class that the context is of; empty if it may leak.
     *
     * @throws ExtensionConfigurationException if the annotation is wrong
     */
    static Optional<Repeats> of(ExtensionContext context) {
        return Limits.find(context, NoLeak.class)
                .map(
                        found ->
                                new Repeats(
                                        within(Growth.PARTS, "runs", found.runs(), context),
                                        within(1, "warmUp", found.warmUp(), context),
                                        Limits.size("@NoLeak", found.allow(), context)));
    }

    private static int within(int least, String name, int value, ExtensionContext context) {
        if (value < least || value > MAX_RUNS) {
            throw new ExtensionConfigurationException(
                    "@NoLeak of "
                            + context.getDisplayName()
                            + ": "
                            + name
                            + " must be from "
                            + least
                            + " to "
                            + MAX_RUNS);
        }
        return value;
    }

    /** How many runs come before the end of a part, the first part being 1. */
    int runsUntil(int part) {
        return (int) ((long) runs * part / Growth.PARTS);
    }
}
