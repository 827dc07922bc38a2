package victim.contexts;

import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;
import victim.ContextWays;

/** Allocations by many paths. */
public final class Paths {
    private static volatile Object sink;

    private Paths() {}

    /** One object. */
    public static void once() {
        sink = new Once();
    }

    /** The same object of it by several paths, in loops, lambdas, and methods of the JDK that call back. */
    public static void mixed(int rounds) {
        for (int round = 0; round < rounds; round++) {
            left(round);
            right(round);
            IntFunction<Object> array = length -> new long[length];
            sink = array.apply(round % 5);
            java.util.List.of(1, 2, 3).forEach(each -> leaf(each));
        }
    }

    private static void left(int round) {
        leaf(round);
        if (round % 2 == 0) {
            right(round);
        }
    }

    private static void right(int round) {
        leaf(round);
        leaf(round);
    }

    private static void leaf(int round) {
        sink = new Once();
        sink = new byte[round % 3];
        sink = new String[2];
    }

    /** An object at each depth. */
    public static void recurse(int depth) {
        sink = new Once();
        if (depth > 1) {
            recurse(depth - 1);
        }
    }

    /** A tree of calls in which every path up to this depth occurs, with an object at each. */
    public static void wide(int depth) {
        if (depth > 0) {
            one(depth - 1);
            other(depth - 1);
        }
    }

    private static void one(int depth) {
        sink = new Once();
        wide(depth);
    }

    private static void other(int depth) {
        sink = new Once();
        wide(depth);
    }

    /** Allocations between which the thread gives way, two frames deep. */
    public static void yielding(int rounds) {
        for (int round = 0; round < rounds; round++) {
            ContextWays.SINK.set(new Once());
            parked();
        }
    }

    private static void parked() {
        ContextWays.SINK.set(new int[3]);
        Thread.yield();
        ContextWays.SINK.set(new int[4]);
        LockSupport.parkNanos(1);
        ContextWays.SINK.set(new Once());
    }

    /** The object that is allocated. */
    static final class Once {}
}
