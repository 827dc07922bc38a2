package dev.heapwarden.junit;

import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;

/** Whether a test kept its limits, and what to say if not. Pure. */
final class Verdict {
    /** How many standard errors a figure has to be over its limit by. */
    private static final double CERTAINTY = 3;

    private static final int TOP_CLASSES = 10;

    private Verdict() {}

    /** The failure's message; empty if the limits were kept, as far as the figures can tell. */
    static Optional<String> of(Limits limits, Figures figures) {
        if (limits.maxLiveBytes != null) {
            long limit = limits.maxLiveBytes;
            if (over(figures.liveBytes, figures.standardErrorBytes, limit)) {
                return Optional.of(
                        heading(
                                        "@MaxLive",
                                        "held at its end",
                                        figures.liveBytes,
                                        figures.standardErrorBytes,
                                        limit)
                                + account(figures)
                                + table(figures, row -> row.liveBytes));
            }
            double error = figures.peakStandardErrorBytes;
            // Where the end was the peak, its own standard error has acquitted it.
            if (figures.peakLiveBytes > figures.liveBytes
                    && over(figures.peakLiveBytes, error, limit)) {
                return Optional.of(
                        heading(
                                        "@MaxLive",
                                        "held at a collection while it ran",
                                        figures.peakLiveBytes,
                                        error,
                                        limit)
                                + account(figures)
                                + table(figures, row -> row.allocatedBytes));
            }
        }
        if (limits.maxAllocatedBytes != null) {
            long limit = limits.maxAllocatedBytes;
            double error = figures.allocatedStandardErrorBytes;
            if (over(figures.allocatedBytes, error, limit)) {
                return Optional.of(
                        heading("@MaxAllocated", "allocated", figures.allocatedBytes, error, limit)
                                + account(figures)
                                + table(figures, row -> row.allocatedBytes));
            }
        }
        return Optional.empty();
    }

    private static boolean over(long bytes, double standardError, long limit) {
        return bytes - CERTAINTY * standardError > limit;
    }

    private static String heading(
            String annotation, String what, long bytes, double standardError, long limit) {
        return String.format(
                Locale.ROOT,
                "%s: the test %s %s (%d bytes), standard error %s; its limit is %s (%d bytes)%n",
                annotation,
                what,
                Size.format(bytes),
                bytes,
                Size.format(standardError),
                Size.format(limit),
                limit);
    }

    private static String account(Figures figures) {
        String how =
                figures.exact
                        ? "every allocation is counted"
                        : "estimated from one sample in " + Size.format(figures.intervalBytes);
        return String.format(
                Locale.ROOT,
                "  live at the end %s in %d objects, at most at a collection %s;"
                        + " allocated %s in %d objects; %s%n",
                Size.format(figures.liveBytes),
                figures.liveObjects,
                Size.format(figures.peakLiveBytes),
                Size.format(figures.allocatedBytes),
                figures.allocatedObjects,
                how);
    }

    /** The classes with most bytes of a kind. */
    private static String table(Figures figures, ToLongFunction<Figures.Row> bytes) {
        String rows =
                figures.rows.stream()
                        .sorted(Comparator.comparingLong(bytes).reversed())
                        .limit(TOP_CLASSES)
                        .map(
                                row ->
                                        String.format(
                                                Locale.ROOT,
                                                "  %10s %12d %10s  %s",
                                                Size.format(row.liveBytes),
                                                row.liveObjects,
                                                Size.format(row.allocatedBytes),
                                                row.name))
                        .collect(Collectors.joining(System.lineSeparator()));
        return String.format(Locale.ROOT, "  %10s %12s %10s  %s%n", "live", "live objects",
                        "allocated", "class")
                + rows;
    }
}
