package com.acme.services.leak;

import java.util.ArrayList;
import java.util.List;
import victim.leaks.Load;
import victim.leaks.Pace;

/** Leaks 100e3 bytes a second. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private final List<Entry> kept = new ArrayList<>();

    @Override
    public void tick(double now, double seconds) {
        for (int due = pace.due(100e3, seconds, BYTES); due > 0; due--) {
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
