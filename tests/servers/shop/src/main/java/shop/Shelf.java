package shop;

import java.util.ArrayList;
import java.util.List;

/** The memory that the application holds: arrays of one length. Only called with its lock held. */
final class Shelf {
    private static final int SLOTS = 64;
    private static final int SLOT_LENGTH = 1_000;

    /** A crate with its slots: headers of 16 bytes, references of 4, as heaps below 32 GiB have. */
    private static final long CRATE_BYTES = 16 + 4 * SLOTS + SLOTS * (16 + SLOT_LENGTH);

    private final List<byte[][]> held = new ArrayList<>();
    private final List<byte[][]> crates = new ArrayList<>();

    synchronized void hold(int length, int count) {
        held.add(filled(length, count));
    }

    /** Holds as many whole crates as there is room for in so many bytes. */
    synchronized long level(long bytes) {
        while ((crates.size() + 1) * CRATE_BYTES <= bytes) {
            crates.add(filled(SLOT_LENGTH, SLOTS));
        }
        while (crates.size() * CRATE_BYTES > bytes) {
            crates.remove(crates.size() - 1);
        }
        return crates.size() * CRATE_BYTES;
    }

    synchronized void drop() {
        held.clear();
    }

    private static byte[][] filled(int length, int count) {
        byte[][] slots = new byte[count][];
        for (int i = 0; i < count; i++) {
            slots[i] = new byte[length];
        }
        return slots;
    }
}
