package com.acme.services.batch;

import java.util.ArrayList;
import java.util.List;
import victim.leaks.Load;
import victim.leaks.Pace;

/** A batch each 20 s, which is dropped after 15 s. */
public final class Store implements Load {
    private static final int BYTES = 1_000;
    private final Pace pace = new Pace();
    private List<Entry> kept = new ArrayList<>();
    private int done = -1;

    @Override
    public void tick(double now, double seconds) {
        int number = (int) (now / 20);
        if (number != done) {
            done = number;
            for (int k = 0; k < 4_000; k++) {
                kept.add(new Entry(now + 15));
            }
        } else if (now - number * 20 > 15) {
            kept = new ArrayList<>();
        }
        pace.due(0, seconds, BYTES);
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
