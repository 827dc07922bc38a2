package com.acme.services.random;

import java.util.concurrent.ThreadLocalRandom;
import victim.leaks.Load;
import victim.leaks.Pace;

/** A full cache that drops any entry. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private static final int MOST = 2_000;
    private final Entry[] kept = new Entry[MOST];

    @Override
    public void tick(double now, double seconds) {
        for (int due = pace.due(300e3, seconds, BYTES); due > 0; due--) {
            kept[ThreadLocalRandom.current().nextInt(MOST)] = new Entry(now);
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
