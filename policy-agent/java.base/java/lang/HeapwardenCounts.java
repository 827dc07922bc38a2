package java.lang;

/** The counts of one platform thread, in a list of all of them. */
final class HeapwardenCounts {
    /** A {@link HeapwardenTable}, written by its owner. Volatile, so that who sees a new one sees what is in it. */
    volatile long[] values;

    final Thread owner;
    HeapwardenCounts next;

    HeapwardenCounts(long[] values, Thread owner) {
        this.values = values;
        this.owner = owner;
    }
}
