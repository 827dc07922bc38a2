package dev.heapwarden.junit;

import java.util.ArrayList;
import java.util.List;

/** The agent's counts for one test. Immutable. */
final class Figures {
    /** One class of objects. */
    static final class Row {
        final String name;
        final long liveBytes;
        final long liveObjects;
        final long allocatedBytes;

        Row(String name, long liveBytes, long liveObjects, long allocatedBytes) {
            this.name = name;
            this.liveBytes = liveBytes;
            this.liveObjects = liveObjects;
            this.allocatedBytes = allocatedBytes;
        }
    }

    /** How many figures the agent gives of a purse. */
    private static final int COUNT = 11;

    /** How many the agent gives of a class. */
    private static final int COLUMNS = 4;

    final long liveBytes;

    /** Of the live bytes. */
    final long standardErrorBytes;

    final long liveObjects;
    final long allocatedBytes;
    final long allocatedObjects;

    /** The most that was live at a collection while the test ran. */
    final long peakLiveBytes;

    final long peakStandardErrorBytes;
    final long allocatedStandardErrorBytes;

    /** Every allocation was counted. */
    final boolean exact;

    /** Mean bytes between samples; 0 if exact. */
    final long intervalBytes;

    final List<Row> rows;

    /** In the order of the agent's {@code Bridge.figures} and {@code Bridge.classes}. */
    Figures(long[] figures, Object[] classes) {
        if (figures.length < COUNT) {
            throw new IllegalStateException(
                    "the agent gives other figures than heapwarden-junit wants: use one release");
        }
        this.liveBytes = figures[0];
        this.standardErrorBytes = figures[2];
        this.liveObjects = figures[3];
        this.allocatedBytes = figures[4];
        this.allocatedObjects = figures[5];
        this.peakLiveBytes = Math.max(figures[6], figures[0]);
        this.exact = figures[7] == 1;
        this.intervalBytes = figures[8];
        this.peakStandardErrorBytes = figures[6] > figures[0] ? figures[9] : figures[2];
        this.allocatedStandardErrorBytes = figures[10];
        List<Row> found = new ArrayList<>();
        for (int at = 0; at + COLUMNS <= classes.length; at += COLUMNS) {
            found.add(
                    new Row(
                            (String) classes[at],
                            (Long) classes[at + 1],
                            (Long) classes[at + 2],
                            (Long) classes[at + 3]));
        }
        this.rows = List.copyOf(found);
    }
}
