package com.acme.services.refreshed;

import java.util.ArrayList;
import java.util.List;
import victim.leaks.Load;
import victim.leaks.Pace;

/** A cache that is thrown away and filled again each 15 s. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private List<Entry> kept = new ArrayList<>();
    private int round;

    @Override
    public void tick(double now, double seconds) {
        if ((int) (now / 15) != round) {
            round = (int) (now / 15);
            kept = new ArrayList<>();
        }
        for (int due = pace.due(300e3, seconds, BYTES); due > 0; due--) {
            kept.add(new Entry(now));
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
