package com.acme.services.ttl;

import java.util.ArrayDeque;
import victim.leaks.Load;
import victim.leaks.Pace;

/** Entries that live for 20 s. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private final ArrayDeque<Entry> kept = new ArrayDeque<>();

    @Override
    public void tick(double now, double seconds) {
        while (!kept.isEmpty() && kept.peek().until < now) {
            kept.poll();
        }
        for (int due = pace.due(200e3, seconds, BYTES); due > 0; due--) {
            kept.add(new Entry(now + 20));
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
