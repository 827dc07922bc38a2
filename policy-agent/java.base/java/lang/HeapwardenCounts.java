package java.lang;

/** A {@link HeapwardenTable} of one platform thread, in a list of all of them. */
final class HeapwardenCounts {
    final long[] values;
    final Thread owner;
    HeapwardenCounts next;

    HeapwardenCounts(long[] values, Thread owner) {
        this.values = values;
        this.owner = owner;
    }
}
