package shop;

import java.util.ArrayList;
import java.util.List;

/** What the application holds: arrays of one length. Only called with its lock held. */
final class Shelf {
    private final List<byte[][]> held = new ArrayList<>();

    synchronized void hold(int length, int count) {
        byte[][] slots = new byte[count][];
        for (int i = 0; i < count; i++) {
            slots[i] = new byte[length];
        }
        held.add(slots);
    }

    synchronized void drop() {
        held.clear();
    }
}
