package dev.heapwarden.junit;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Finds the classes that grew from look to look, in one series of runs. Pure.
 *
 * <p>A class grows if each part of the runs has left more live bytes of it. Five levels that go up and
 * down by chance rise four times in one series of 120; so the parts must be similar, and a second
 * series must agree. Where allocations are sampled, the growth must also exceed three standard errors
 * of a difference in which nothing of the first look is left in the last.
 */
final class Growth {
    /** Into how many parts a series is divided: there is one more look. */
    static final int PARTS = 4;

    /** How many standard errors a growth has to have. */
    private static final double CERTAINTY = 3;

    /** How much less than the largest part the smallest may leave, where all is counted. */
    private static final int SIMILAR = 4;

    private static final int MAX_LISTED = 10;

    /** Of each place: below are JUnit's own. */
    private static final int MAX_FRAMES = 6;

    /** A class that grew. */
    static final class Row {
        final String name;
        final long bytes;
        final long objects;

        /** Of what was live at the end of the series. */
        final long liveBytes;

        Row(String name, long bytes, long objects, long liveBytes) {
            this.name = name;
            this.bytes = bytes;
            this.objects = objects;
            this.liveBytes = liveBytes;
        }
    }

    private Growth() {}

    /** The classes that grew, those of the application first, then by bytes. */
    static List<Row> of(Repeats repeats, List<Figures> looks) {
        if (looks.size() != PARTS + 1) {
            throw new IllegalArgumentException("a series has " + (PARTS + 1) + " looks");
        }
        List<Map<String, Figures.Row>> byName =
                looks.stream().map(Growth::byName).collect(Collectors.toList());
        boolean exact = looks.stream().allMatch(look -> look.exact);
        long interval = looks.stream().mapToLong(look -> look.intervalBytes).max().orElse(0);
        List<Row> grown = new ArrayList<>();
        for (String name : byName.get(PARTS).keySet()) {
            Row row = grown(name, byName, repeats, exact, interval);
            if (row != null) {
                grown.add(row);
            }
        }
        grown.sort(
                Comparator.comparing((Row row) -> isOfTheJdk(row.name))
                        .thenComparing(Comparator.comparingLong((Row row) -> row.bytes).reversed())
                        .thenComparing(row -> row.name));
        return grown;
    }

    private static Map<String, Figures.Row> byName(Figures look) {
        Map<String, Figures.Row> rows = new HashMap<>();
        for (Figures.Row row : look.rows) {
            // Classes of one name from several loaders are one.
            rows.merge(
                    row.name,
                    row,
                    (one, other) ->
                            new Figures.Row(
                                    one.name,
                                    one.liveBytes + other.liveBytes,
                                    one.liveObjects + other.liveObjects,
                                    one.allocatedBytes + other.allocatedBytes));
        }
        return rows;
    }

    private static @Nullable Row grown(
            String name,
            List<Map<String, Figures.Row>> looks,
            Repeats repeats,
            boolean exact,
            long interval) {
        Figures.Row nothing = new Figures.Row(name, 0, 0, 0);
        Figures.Row first = looks.get(0).getOrDefault(name, nothing);
        Figures.Row last = looks.get(PARTS).getOrDefault(name, nothing);
        double least = Double.MAX_VALUE;
        double most = 0;
        long before = first.liveBytes;
        for (int part = 1; part <= PARTS; part++) {
            long after = looks.get(part).getOrDefault(name, nothing).liveBytes;
            int runs = repeats.runsUntil(part) - repeats.runsUntil(part - 1);
            double left = (after - before) / (double) runs;
            if (left <= 0) {
                return null;
            }
            least = Math.min(least, left);
            most = Math.max(most, left);
            before = after;
        }
        if (exact && least * SIMILAR < most) {
            return null;
        }
        long bytes = last.liveBytes - first.liveBytes;
        double error =
                exact ? 0 : Math.sqrt((double) interval * (first.liveBytes + last.liveBytes));
        if (bytes - CERTAINTY * error <= (double) repeats.allowedBytes * repeats.runs) {
            return null;
        }
        return new Row(name, bytes, last.liveObjects - first.liveObjects, last.liveBytes);
    }

    /** Returns the classes that grew in both series, with the figures of the second. */
    static List<Row> confirmed(List<Row> first, List<Row> second) {
        Set<String> names = first.stream().map(row -> row.name).collect(Collectors.toSet());
        return second.stream().filter(row -> names.contains(row.name)).collect(Collectors.toList());
    }

    /** The size from which on a leak is seen in nearly all cases, in bytes a run; 0 if in all. */
    static double seenFromBytes(Repeats repeats, Figures look) {
        if (look.exact) {
            return 0;
        }
        // Five samples in each part: none of them is empty by chance in 97 series of 100.
        double samples = 5.0 * PARTS;
        return samples * look.intervalBytes / repeats.runs;
    }

    /**
     * The failure's message.
     *
     * @param sites by class, where it was allocated; empty or absent if that is not known
     */
    static String message(
            Repeats repeats, List<Row> grown, Figures look, Map<String, List<Site>> sites) {
        Row worst = grown.get(0);
        String others =
                grown.size() == 1
                        ? ""
                        : String.format(
                                Locale.ROOT, ", and %d other classes", grown.size() - 1);
        String how =
                look.exact
                        ? "every allocation is counted"
                        : "estimated from one sample in " + Size.format(look.intervalBytes);
        String rows =
                grown.stream()
                        .limit(MAX_LISTED)
                        .map(row -> line(row, repeats))
                        .collect(Collectors.joining(System.lineSeparator()));
        return String.format(
                        Locale.ROOT,
                        "@NoLeak: each run of the test leaves %s of %s%s%n"
                                + "  what grew in each quarter of %d runs, and of %d runs before"
                                + " them, after %d to warm up; %s%n",
                        Size.format((double) worst.bytes / repeats.runs),
                        worst.name,
                        others,
                        repeats.runs,
                        repeats.runs,
                        repeats.warmUp,
                        how)
                + String.format(
                        Locale.ROOT,
                        "  %12s %13s %10s  %s%n",
                        "bytes a run",
                        "objects a run",
                        "live",
                        "class")
                + rows
                + sites.entrySet().stream()
                        .filter(entry -> !entry.getValue().isEmpty())
                        .map(entry -> places(entry.getKey(), entry.getValue()))
                        .collect(Collectors.joining());
    }

    /** Where a class was allocated in the second series. */
    private static String places(String name, List<Site> sites) {
        StringBuilder text = new StringBuilder();
        text.append(String.format(Locale.ROOT, "%n  %s was allocated at", name));
        for (Site site : sites) {
            String share = String.format(Locale.ROOT, "%3d%%", Math.round(site.share / 10.0));
            for (String frame : site.frames.subList(0, Math.min(site.frames.size(), MAX_FRAMES))) {
                text.append(String.format(Locale.ROOT, "%n  %s  %s", share, frame));
                share = "    ";
            }
        }
        return text.toString();
    }

    private static String line(Row row, Repeats repeats) {
        return String.format(
                Locale.ROOT,
                "  %12s %13.1f %10s  %s",
                Size.format((double) row.bytes / repeats.runs),
                (double) row.objects / repeats.runs,
                Size.format(row.liveBytes),
                row.name);
    }

    /** Whether a class, or the elements of an array, are the JDK's or primitive. */
    static boolean isOfTheJdk(String name) {
        return name.indexOf('.') < 0 && name.endsWith("[]")
                || name.startsWith("java.")
                || name.startsWith("javax.")
                || name.startsWith("jdk.")
                || name.startsWith("sun.")
                || name.startsWith("com.sun.");
    }
}
