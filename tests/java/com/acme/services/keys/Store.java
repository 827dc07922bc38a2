package com.acme.services.keys;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import victim.leaks.Load;
import victim.leaks.Pace;

/** A map whose keys grow by 100e3 bytes a second, and whose values are replaced all the time. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private static final int KEY_BYTES = 200;
    private final Pace pace = new Pace();
    private final Map<Key, Entry> kept = new HashMap<>();
    private final Pace keys = new Pace();
    private final List<Key> known = new ArrayList<>();

    private int emptied;

    @Override
    public void tick(double now, double seconds) {
        for (int due = keys.due(100e3, seconds, KEY_BYTES); due > 0; due--) {
            known.add(new Key(known.size()));
        }
        // Of the last thousand keys: an older key has no value.
        int from = Math.max(0, known.size() - 1_000);
        for (; emptied < from; emptied++) {
            kept.put(known.get(emptied), null);
        }
        for (int due = pace.due(300e3, seconds, BYTES); due > 0 && !known.isEmpty(); due--) {
            int number = ThreadLocalRandom.current().nextInt(from, known.size());
            kept.put(known.get(number), new Entry(now));
        }
    }

    /** A key with a name. */
    static final class Key {
        final byte[] name = new byte[KEY_BYTES - 40];
        final int number;

        Key(int number) {
            this.number = number;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).number == number;
        }

        @Override
        public int hashCode() {
            return number;
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
