package java.lang;

import jdk.internal.vm.annotation.ForceInline;

/**
 * Bytes and objects by account and class: open addressing in one array, of which a slot has the key, the bytes, the
 * objects, and a fourth place that only the first slot uses, for the number of keys. A thread does not count the bytes
 * of instances, which are all of one size: {@link #sum} knows them by the number of their class.
 *
 * <p>A table has one writer, and any reader: a key that is there stays at its place, so a reader that comes
 * early misses the latest objects, and has them the next time. A table that gets too small is followed by a
 * larger one, which begins empty; both count. So a virtual thread that still has the first loses nothing: the JDK may
 * let its carrier run for a moment without mounting it anew.
 *
 * <p>It is bounded: if there is no room for another class, its objects count as those of other classes of the account.
 */
final class HeapwardenTable {
    static final int STRIDE = 4;

    /** All classes that are not told apart. Not 0, so that no key is. */
    static final int OTHER = 1;

    /** In the table of a thread that begins to allocate. */
    static final int FIRST_SLOTS = 16;

    /** In the table of one thread: 128 KB. */
    static final int MAX_SLOTS = 1 << 12;

    /** In the sum of all threads: 8 MB. */
    private static final int MAX_SLOTS_OF_ALL = 1 << 18;

    /** Beyond so many slots a table is filled to three quarters; up to there to one, because nobody likes to search. */
    private static final int ROOMY_SLOTS = 1 << 10;

    /** An empty table, which is full. */
    static final long[] NONE = new long[STRIDE];

    /** 2^64 divided by the golden ratio: neighbours are spread over the table (Knuth, vol. 3, 6.4). */
    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    private HeapwardenTable() {}

    static long[] ofSlots(int slots) {
        return new long[STRIDE * slots];
    }

    /** Never 0 for an account and a number; negative, or larger than any other, for what is no account. */
    @ForceInline
    static long key(int account, int number) {
        return (long) account << 16 | number;
    }

    /** The number of a class in a key. */
    static int number(long key) {
        return (int) key & 0xFFFF;
    }

    /** The key of other classes of the same account. */
    static long other(long key) {
        return key & -1L << 16 | OTHER;
    }

    /** Where a key is looked for first. */
    @ForceInline
    static int home(long[] table, long key) {
        return (int) (key * SPREAD >>> 32) & table.length - STRIDE;
    }

    /** The place of a key, or of the first free slot on the way to it; -1 if the table is full without it. */
    private static int find(long[] table, long key) {
        int at = home(table, key);
        for (int left = table.length; left > 0; left -= STRIDE) {
            if (table[at] == key || table[at] == 0 && table != NONE) {
                return at;
            }
            at = at + STRIDE & table.length - STRIDE;
        }
        return -1;
    }

    /** Adds to a key that is there; false if it is not. */
    static boolean add(long[] table, long key, long bytes, long objects) {
        int at = find(table, key);
        if (at < 0 || table[at] != key) {
            return false;
        }
        table[at + 1] += bytes;
        table[at + 2] += objects;
        return true;
    }

    /** Adds to a key, which is put in if there is room for it; that of other classes finds some as long as any is left. */
    static boolean put(long[] table, long key, long bytes, long objects) {
        if (add(table, key, bytes, objects)) {
            return true;
        }
        if (!hasRoom(table) && number(key) != OTHER) {
            return false;
        }
        int at = find(table, key);
        if (at < 0) {
            return false;
        }
        // The key last: a reader that sees it may see less beside it, which is no error.
        table[at + 1] = bytes;
        table[at + 2] = objects;
        table[at] = key;
        table[3]++;
        return true;
    }

    private static boolean hasRoom(long[] table) {
        int slots = table.length / STRIDE;
        return table != NONE
                && table[3] < (slots <= ROOMY_SLOTS ? slots / 4 : slots / 4 * 3);
    }

    /** An empty one to follow a table that has no room; the table itself if it has, or may not be larger. */
    static long[] follower(long[] table) {
        int slots = table.length / STRIDE;
        return hasRoom(table) || slots >= MAX_SLOTS
                ? table
                : ofSlots(Math.max(2 * slots, FIRST_SLOTS));
    }

    /** The table, or a larger one with what is in it if it has no room and may be larger. The agent's thread. */
    private static long[] withRoom(long[] table) {
        int slots = table.length / STRIDE;
        if (hasRoom(table) || slots >= MAX_SLOTS_OF_ALL) {
            return table;
        }
        long[] larger = ofSlots(2 * slots);
        for (int at = 0; at < table.length; at += STRIDE) {
            if (table[at] != 0) {
                put(larger, table[at], table[at + 1], table[at + 2]);
            }
        }
        return larger;
    }

    /** The same table without what is in it. */
    static long[] emptied(long[] table) {
        for (int at = 0; at < table.length; at++) {
            table[at] = 0;
        }
        return table;
    }

    /**
     * Adds all of a table to another, or to a larger one in its place. The agent's thread.
     *
     * @param sizes of instances, by the number of their class, which {@code from} lacks; null if it lacks nothing
     */
    static long[] sum(long[] from, int[] sizes, long[] into) {
        long[] sum = into;
        for (int at = 0; at < from.length; at += STRIDE) {
            long key = from[at];
            if (key == 0) {
                continue;
            }
            long objects = from[at + 2];
            long bytes = from[at + 1] + (sizes == null ? 0 : objects * sizes[number(key)]);
            if (!add(sum, key, bytes, objects)) {
                sum = withRoom(sum);
                if (!put(sum, key, bytes, objects)) {
                    put(sum, other(key), bytes, objects);
                }
            }
        }
        return sum;
    }
}
