package dev.heapwarden.junit;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;

/** Runs a test's body again and again, and looks at what is live between. */
final class Series {
    /** The body of a test. */
    interface Body {
        void run() throws Throwable;
    }

    /** The key of the entry in the test's report. */
    private static final String REPORT = "heapwarden.no-leak";

    /** Of so many classes at the most the places are told. */
    private static final int MAX_TRACED = 3;

    private final Measurement measurement;
    private final Repeats repeats;
    private final Body body;

    /** Of the body; the test's own call was the first. */
    private int runsSoFar = 1;

    Series(Measurement measurement, Repeats repeats, Body body) {
        this.measurement = measurement;
        this.repeats = repeats;
        this.body = body;
    }

    /**
     * Runs the body as often as needed, after its first run.
     *
     * @param report takes what the test cannot see
     * @return the failure's message; empty if nothing grew, as far as the figures can tell
     * @throws Throwable what the body throws
     */
    Optional<String> verdict(BiConsumer<String, String> report) throws Throwable {
        run(repeats.warmUp - runsSoFar);
        List<Figures> looks = looks(measurement.figures());
        List<Growth.Row> grown = Growth.of(repeats, looks);
        if (!grown.isEmpty()) {
            // Of the second series alone: a stack costs more than the rest of a sample.
            measurement.trace(true);
            try {
                looks = looks(looks.get(Growth.PARTS));
                grown = Growth.confirmed(grown, Growth.of(repeats, looks));
                if (!grown.isEmpty()) {
                    return Optional.of(failure(grown, looks.get(Growth.PARTS)));
                }
            } finally {
                measurement.trace(false);
            }
        }
        Figures last = looks.get(Growth.PARTS);
        double seenFrom = Growth.seenFromBytes(repeats, last);
        if (seenFrom > 0) {
            report.accept(
                    REPORT,
                    "allocations are sampled: leaks are seen from about "
                            + Size.format(seenFrom)
                            + " a run on");
        }
        return Optional.empty();
    }

    private String failure(List<Growth.Row> grown, Figures last) throws InterruptedException {
        Map<String, List<Site>> sites = new LinkedHashMap<>();
        for (Growth.Row row : grown.subList(0, Math.min(grown.size(), MAX_TRACED))) {
            sites.put(row.name, measurement.sites(row.name));
        }
        return Growth.message(repeats, grown, last, sites);
    }

    /** One series; {@code first} is what was live before it. */
    private List<Figures> looks(Figures first) throws Throwable {
        List<Figures> looks = new ArrayList<>(Growth.PARTS + 1);
        looks.add(first);
        for (int part = 1; part <= Growth.PARTS; part++) {
            run(repeats.runsUntil(part) - repeats.runsUntil(part - 1));
            looks.add(measurement.figures());
        }
        return looks;
    }

    private void run(int times) throws Throwable {
        for (int done = 0; done < times; done++) {
            runsSoFar++;
            try {
                body.run();
            } catch (Throwable failure) {
                failure.addSuppressed(
                        new IllegalStateException(
                                "@NoLeak: this was run "
                                        + runsSoFar
                                        + " of the test's body; @BeforeEach and @AfterEach run once,"
                                        + " around all runs"));
                throw failure;
            }
        }
    }
}
