package com.acme.tenant;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A tenant that holds what it is told to, and notices when it is refused.
 *
 * <p>Everything here allocates in frames of this package: its account's own.
 */
public final class Tenant {
    /** Bytes of a byte array beyond its length, rounded up; the victim measures it. */
    private final long arrayHeaderBytes;

    private final AtomicLong heldBytes = new AtomicLong();
    private final AtomicLong churnedBytes = new AtomicLong();
    private final List<List<byte[]>> held = new ArrayList<>();

    public Tenant(long arrayHeaderBytes) {
        this.arrayHeaderBytes = arrayHeaderBytes;
    }

    /** Bytes of all arrays held now, headers included. */
    public long heldBytes() {
        return heldBytes.get();
    }

    public long churnedBytes() {
        return churnedBytes.get();
    }

    /**
     * Holds arrays of {@code length} bytes until {@code most} bytes are held by this call or it is
     * refused; returns the refusal, or null. Garbage of the same size is made beside each array as
     * many times as {@code garbage} says.
     */
    public Throwable hold(int length, long most, int garbage) {
        long bytes = (arrayHeaderBytes + length + 7) & ~7L;
        try {
            List<byte[]> mine = new ArrayList<>();
            synchronized (held) {
                held.add(mine);
            }
            for (long sum = 0; sum < most; sum += bytes) {
                mine.add(new byte[length]);
                heldBytes.addAndGet(bytes);
                for (int i = 0; i < garbage; i++) {
                    churn(length);
                }
            }
            return null;
        } catch (Throwable refused) {
            return refused;
        }
    }

    /** Makes garbage until told to stop or refused; returns the refusal, or null. */
    public Throwable churn(int length, java.util.function.BooleanSupplier goOn) {
        try {
            while (goOn.getAsBoolean()) {
                for (int i = 0; i < 1_000; i++) {
                    churn(length);
                }
                churnedBytes.addAndGet(1_000L * length);
            }
            return null;
        } catch (Throwable refused) {
            return refused;
        }
    }

    /** Made and forgotten, but not optimised away. */
    private byte[] last;

    private void churn(int length) {
        last = new byte[length];
    }

    /** Lets go of everything. */
    public void drop() {
        synchronized (held) {
            held.clear();
        }
        last = null;
        heldBytes.set(0);
    }

    /** Lets go of the arrays held first, until at most {@code most} bytes are held. */
    public void dropTo(long most) {
        synchronized (held) {
            for (List<byte[]> list : held) {
                while (!list.isEmpty() && heldBytes.get() > most) {
                    byte[] gone = list.remove(list.size() - 1);
                    heldBytes.addAndGet(-((arrayHeaderBytes + gone.length + 7) & ~7L));
                }
            }
        }
    }
}
