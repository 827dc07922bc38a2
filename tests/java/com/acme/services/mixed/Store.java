package com.acme.services.mixed;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.ThreadLocalRandom;
import victim.leaks.Load;
import victim.leaks.Pace;

/** Sessions, one in ten of which is never dropped: 50e3 bytes a second. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private final PriorityQueue<Entry> kept =
            new PriorityQueue<>(Comparator.comparingDouble((Entry entry) -> entry.until));
    private final List<Entry> leaked = new ArrayList<>();

    @Override
    public void tick(double now, double seconds) {
        while (!kept.isEmpty() && kept.peek().until < now) {
            kept.poll();
        }
        for (int due = pace.due(500e3, seconds, BYTES); due > 0; due--) {
            double lives = -4.0 * Math.log(1 - ThreadLocalRandom.current().nextDouble());
            Entry entry = new Entry(now + lives);
            if (ThreadLocalRandom.current().nextInt(10) == 0) {
                leaked.add(entry);
            } else {
                kept.add(entry);
            }
        }
    }

    /** An object that the store keeps, with its payload. */
    static final class Entry {
        final byte[] payload = new byte[BYTES - 40];
        final double until;

        Entry(double until) {
            this.until = until;
        }
    }
}
