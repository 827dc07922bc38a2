package com.acme.tenant;

import java.util.ArrayList;
import java.util.List;

/** Background work of the tenant that expects no error. */
public final class Cleaner implements Runnable {
    private static final List<byte[]> HELD = new ArrayList<>();

    private final long most;

    /** Holds at most so many bytes, for good. */
    public Cleaner(long most) {
        this.most = most;
    }

    @Override
    public void run() {
        for (long sum = 0; sum < most; sum += 10_000) {
            byte[] more = new byte[10_000];
            synchronized (HELD) {
                HELD.add(more);
            }
        }
    }
}
