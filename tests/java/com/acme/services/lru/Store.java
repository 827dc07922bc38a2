package com.acme.services.lru;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import victim.leaks.Load;
import victim.leaks.Pace;

/** A full cache that drops the least recently used entry. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private static final int MOST = 2_000;
    private final Map<Integer, Entry> kept =
            new LinkedHashMap<>(MOST, 0.75f, true) {
                private static final long serialVersionUID = 1;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Integer, Entry> eldest) {
                    return size() > MOST;
                }
            };
    private int next;

    @Override
    public void tick(double now, double seconds) {
        for (int due = pace.due(300e3, seconds, BYTES); due > 0; due--) {
            kept.put(next++, new Entry(now));
            kept.get(ThreadLocalRandom.current().nextInt(Math.max(0, next - MOST), next));
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
