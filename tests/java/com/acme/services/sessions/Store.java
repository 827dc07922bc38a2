package com.acme.services.sessions;

import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.concurrent.ThreadLocalRandom;
import victim.leaks.Load;
import victim.leaks.Pace;

/** Sessions that live for 6 s in the mean, some much longer. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private final PriorityQueue<Entry> kept =
            new PriorityQueue<>(Comparator.comparingDouble((Entry entry) -> entry.until));

    @Override
    public void tick(double now, double seconds) {
        while (!kept.isEmpty() && kept.peek().until < now) {
            kept.poll();
        }
        for (int due = pace.due(300e3, seconds, BYTES); due > 0; due--) {
            double lives = -6.0 * Math.log(1 - ThreadLocalRandom.current().nextDouble());
            kept.add(new Entry(now + lives));
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
