package dev.heapwarden.demo.grow;

import dev.heapwarden.demo.holdings.ObjectSizes;
import dev.heapwarden.demo.holdings.Payloads;

/**
 * Arrays that are never let go, as a chain of two-element arrays: the link before and a payload.
 *
 * <p>Bounded all the same, so that a demo left running does not end in an exhausted heap.
 * Thread-safe: one lock.
 */
final class Hoard {
    private final Payloads payloads = new Payloads(2);
    private final long chainBytesMaximum;
    private Object[] latest;
    private long chainBytes;
    private long count;

    Hoard(long chainBytesMaximum) {
        this.chainBytesMaximum = chainBytesMaximum;
    }

    /**
     * Adds a payload.
     *
     * @return false where the bound is reached: then nothing was added
     */
    synchronized boolean add() {
        if (chainBytes >= chainBytesMaximum) {
            return false;
        }
        Object payload = payloads.next();
        latest = new Object[] {latest, payload};
        chainBytes += ObjectSizes.HERE.referenceArray(2) + Payloads.bytes(payload);
        count++;
        return true;
    }

    /** Lets go of the whole chain. */
    synchronized void clear() {
        latest = null;
        chainBytes = 0;
        count = 0;
    }

    synchronized long entries() {
        return count;
    }

    /** The heap bytes of the chain and this object. */
    synchronized long bytes() {
        return ObjectSizes.HERE.instance(2, 3, 0, 0) + Payloads.ownBytes() + chainBytes;
    }
}
