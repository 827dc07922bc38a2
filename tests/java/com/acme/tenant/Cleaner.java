package com.acme.tenant;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Background work of the tenant that expects no error. It holds 100 MB a second at most: what is refused, and not how fast. */
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
            if (sum % 1_000_000 == 0) {
                LockSupport.parkNanos(10_000_000);
            }
        }
    }
}
