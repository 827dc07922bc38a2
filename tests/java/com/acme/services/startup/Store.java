package com.acme.services.startup;

import java.util.ArrayList;
import java.util.List;
import victim.leaks.Load;
import victim.leaks.Pace;

/** Data loaded in the first seconds, and short-lived work after that. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private final List<Entry> kept = new ArrayList<>();
    private Entry latest;

    @Override
    public void tick(double now, double seconds) {
        for (int due = pace.due(now < 10 ? 3e6 : 200e3, seconds, BYTES); due > 0; due--) {
            latest = new Entry(now);
            if (now < 10) {
                kept.add(latest);
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
