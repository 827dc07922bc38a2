package dev.heapwarden.demo.cache;

import dev.heapwarden.demo.holdings.ObjectSizes;
import dev.heapwarden.demo.holdings.Payloads;

/**
 * A cache of arrays bounded by the bytes it holds: a new entry drives out the oldest ones.
 *
 * <p>It is one table and the entries, nothing else, so that its size is known to the byte.
 * Thread-safe: one lock.
 */
final class EntryCache {
    private static final int SLOTS = 16_384;

    private final Object[] slots = new Object[SLOTS];
    private final Payloads payloads = new Payloads(1);
    private final long entryBytesMaximum;
    private long entryBytes;
    private int oldest;
    private int count;

    EntryCache(long entryBytesMaximum) {
        this.entryBytesMaximum = entryBytesMaximum;
    }

    /** Adds a new entry and drops as many old ones as the bound asks for. */
    synchronized void fill() {
        Object entry = payloads.next();
        entryBytes += Payloads.bytes(entry);
        if (count == SLOTS) {
            dropOldest();
        }
        slots[(oldest + count++) % SLOTS] = entry;
        while (entryBytes > entryBytesMaximum) {
            dropOldest();
        }
    }

    private void dropOldest() {
        entryBytes -= Payloads.bytes(slots[oldest]);
        slots[oldest] = null;
        oldest = (oldest + 1) % SLOTS;
        count--;
    }

    /** Drops every entry. */
    synchronized void clear() {
        while (count > 0) {
            dropOldest();
        }
    }

    synchronized int entries() {
        return count;
    }

    /** The heap bytes of the entries, the table and this object. */
    synchronized long bytes() {
        ObjectSizes sizes = ObjectSizes.HERE;
        return sizes.instance(2, 2, 2, 0)
                + sizes.referenceArray(SLOTS)
                + Payloads.ownBytes()
                + entryBytes;
    }
}
