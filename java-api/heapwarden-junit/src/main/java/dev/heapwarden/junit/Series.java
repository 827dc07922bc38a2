package dev.heapwarden.junit;

import java.util.ArrayList;
import java.util.List;
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
            looks = looks(looks.get(Growth.PARTS));
            grown = Growth.confirmed(grown, Growth.of(repeats, looks));
        }
        Figures last = looks.get(Growth.PARTS);
        if (!grown.isEmpty()) {
            return Optional.of(Growth.message(repeats, grown, last));
        }
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
