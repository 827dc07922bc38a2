package app;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** The arrays that an application holds. */
final class Shelf {
    private static final Queue<byte[][]> HELD = new ConcurrentLinkedQueue<>();

    private Shelf() {}

    static String hold() {
        byte[][] unit = new byte[32][];
        for (int i = 0; i < unit.length; i++) {
            unit[i] = new byte[1_008];
        }
        HELD.add(unit);
        return "held";
    }

    static String delete() {
        HELD.poll();
        return "deleted";
    }

    static String drop() {
        HELD.clear();
        return "dropped";
    }

    static String count() {
        return Integer.toString(HELD.size());
    }
}
