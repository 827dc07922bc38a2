package dev.heapwarden.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

final class GrowthTest {
    private static final Repeats TWENTY = new Repeats(20, 5, 0);
    private static final long KIB = 1 << 10;
    private static final long INTERVAL = 64 * KIB;

    /** A series of looks at one class, with so many bytes at each. */
    private static List<Figures> looks(boolean exact, String name, long... levels) {
        List<Figures> looks = new ArrayList<>();
        for (long level : levels) {
            long interval = exact ? 0 : INTERVAL;
            long[] figures = {level, level, 0, 1, level, 2, level, exact ? 1 : 0, interval, 0, 0};
            Object[] classes = {name, level, level / 100, level};
            looks.add(new Figures(figures, level == 0 ? new Object[0] : classes));
        }
        return looks;
    }

    private static List<String> grown(Repeats repeats, List<Figures> looks) {
        return Growth.of(repeats, looks).stream().map(row -> row.name).collect(Collectors.toList());
    }

    private static boolean grows(boolean exact, long... levels) {
        return !grown(TWENTY, looks(exact, "a.B", levels)).isEmpty();
    }

    @Test
    void what_each_part_adds_to_grows() {
        assertTrue(grows(true, 0, 500, 1000, 1500, 2000));
        assertTrue(grows(true, 9_000_000, 9_000_100, 9_000_200, 9_000_300, 9_000_400));
        // Steps of an array that doubles are no steady growth, and what holds them is found by its elements.
        assertTrue(!grows(true, 100, 200, 400, 800, 1600));
    }

    @Test
    void what_stands_still_falls_or_rises_once_does_not() {
        assertTrue(!grows(true, 500, 500, 500, 500, 500));
        assertTrue(!grows(true, 0, 500, 500, 500, 500));
        assertTrue(!grows(true, 500, 600, 700, 800, 700));
        assertTrue(!grows(true, 500, 600, 600, 700, 800));
        assertTrue(!grows(true, 5, 4, 3, 2, 0));
    }

    @Test
    void what_is_allowed_is_not_told() {
        List<Figures> looks = looks(true, "a.B", 0, 500, 1000, 1500, 2000);
        assertEquals(List.of(), grown(new Repeats(20, 5, 100), looks));
        assertEquals(List.of("a.B"), grown(new Repeats(20, 5, 99), looks));
    }

    @Test
    void an_estimate_grows_by_more_than_its_error_alone() {
        // Eight samples: three standard errors are more than that.
        assertTrue(!grows(false, 0, 128 * KIB, 256 * KIB, 384 * KIB, 512 * KIB));
        assertTrue(grows(false, 0, 256 * KIB, 512 * KIB, 768 * KIB, 1024 * KIB));
        // The same growth of something large that may have been replaced as a whole.
        long large = 256 << 20;
        assertTrue(
                !grows(
                        false,
                        large,
                        large + 256 * KIB,
                        large + 512 * KIB,
                        large + 768 * KIB,
                        large + 1024 * KIB));
    }

    @Test
    void classes_of_the_application_come_first() {
        List<Figures> looks = new ArrayList<>();
        for (long level = 0; level <= 4; level++) {
            long[] figures = {level, level, 0, 1, level, 2, level, 1, 0, 0, 0};
            looks.add(
                    new Figures(
                            figures,
                            new Object[] {
                                "byte[]", 9000 * level, 9 * level, 9000 * level,
                                "java.util.HashMap$Node", 700 * level, 7 * level, 700 * level,
                                "com.acme.Session[]", 500 * level, 5 * level, 500 * level,
                                "Main", 600 * level, 6 * level, 600 * level,
                            }));
        }
        assertEquals(
                List.of("Main", "com.acme.Session[]", "byte[]", "java.util.HashMap$Node"),
                grown(TWENTY, looks));
        String said = Growth.message(
                        TWENTY,
                        Growth.of(TWENTY, looks),
                        looks.get(4),
                        Map.of(
                                "Main",
                                Site.of(
                                        new Object[] {
                                            "Main.make(Main.java:3)\nMain.run(Main.java:9)", 936L,
                                            "Main.more(Main.java:5)", 64L,
                                        }),
                                "byte[]",
                                List.of()));
        assertTrue(
                said.startsWith(
                        "@NoLeak: each run of the test leaves 120 B of Main, and 3 other classes"),
                said);
        assertTrue(said.contains("1.8 KiB           1.8   35.2 KiB  byte[]"), said);
        assertTrue(
                said.endsWith(
                        String.format(
                                "%n  Main was allocated at%n   94%%  Main.make(Main.java:3)"
                                        + "%n        Main.run(Main.java:9)"
                                        + "%n    6%%  Main.more(Main.java:5)")),
                said);
        assertTrue(said.contains("20 runs, and of 20 runs before them, after 5 to warm up"), said);
    }

    @Test
    void two_series_must_agree() {
        List<Growth.Row> one = Growth.of(TWENTY, looks(true, "a.B", 0, 1, 2, 3, 4));
        List<Growth.Row> other = Growth.of(TWENTY, looks(true, "c.D", 0, 1, 2, 3, 4));
        assertEquals(List.of(), Growth.confirmed(one, other));
        assertEquals(1, Growth.confirmed(one, one).size());
    }

    /** Levels that have nothing to do with each other are a leak in two series of a million at the most. */
    @Test
    void chance_is_no_leak() {
        Random random = new Random(17);
        int found = 0;
        int series = 200_000;
        for (int at = 0; at < series; at++) {
            long[] levels = random.longs(5, 0, 100_000).toArray();
            found += grows(true, levels) ? 1 : 0;
        }
        // Each such series is followed by one more: 0.0015 squared.
        assertTrue(found < 0.0015 * series, found + " of " + series);
    }

    @Test
    void a_leak_is_seen_from_the_size_on_that_is_told() {
        double bytes = Growth.seenFromBytes(TWENTY, looks(false, "a.B", 1).get(0));
        assertEquals(64 * 1024.0, bytes);
        assertEquals(0, Growth.seenFromBytes(TWENTY, looks(true, "a.B", 1).get(0)));
        Random random = new Random(4);
        int seen = 0;
        int trials = 2_000;
        for (int trial = 0; trial < trials; trial++) {
            long[] levels = new long[Growth.PARTS + 1];
            for (int part = 1; part <= Growth.PARTS; part++) {
                levels[part] = levels[part - 1];
                // Of a part's bytes, each interval is sampled once on average.
                double left = bytes * 5 / INTERVAL;
                for (double at = exponential(random); at < left; at += exponential(random)) {
                    levels[part] += INTERVAL;
                }
            }
            seen += grows(false, levels) ? 1 : 0;
        }
        assertTrue(seen > 0.95 * trials, seen + " of " + trials);
    }

    private static double exponential(Random random) {
        return -Math.log(1 - random.nextDouble());
    }
}
