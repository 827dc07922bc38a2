package victim.ways.inner;

import java.util.Comparator;

/** Is called by the outer package, throws, and calls back. */
public final class Inner implements Comparator<Integer> {
    private static Object sink;

    /** How often it was asked to compare, which makes an array of 10 bytes. */
    public int compared;

    @Override
    public int compare(Integer one, Integer other) {
        compared++;
        sink = new byte[10];
        return Integer.compare(one, other);
    }

    /** Makes an array of 100 bytes and throws. */
    public static void fail(RuntimeException failure) {
        sink = new byte[100];
        throw failure;
    }

    /** Makes an array of 100 bytes, and runs. */
    public static void call(Runnable back) {
        sink = new byte[100];
        back.run();
        sink = new byte[100];
    }

    /** The last that was made. */
    public static Object last() {
        return sink;
    }
}
