package victim.ways.outer;

import java.util.Arrays;
import victim.ways.inner.Inner;

/**
 * Calls the inner package and makes arrays of 1,000 bytes itself: beside it, after an exception of it, and
 * when it calls back.
 */
public final class Outer {
    private static final RuntimeException FAILURE = new RuntimeException("made beforehand");
    private static Object sink;
    private final Inner inner = new Inner();
    private final Integer[] numbers = {3, 1, 2};
    private final Runnable back = Outer::make;

    private static void make() {
        sink = new byte[1000];
    }

    /** Makes 4 arrays a round; the inner package 5, and as many of 10 bytes as the result says. */
    public int run(int rounds) {
        int before = inner.compared;
        for (int i = 0; i < rounds; i++) {
            make();
            try {
                Inner.fail(FAILURE);
            } catch (RuntimeException caught) {
                sink = new byte[1000];
            }
            Inner.call(back);
            numbers[i % 3] = numbers[(i + 1) % 3];
            // The JDK calls the inner package, which belongs to nobody here.
            Arrays.sort(numbers, inner);
            sink = new byte[1000];
            Inner.call(Outer::nothing);
        }
        return inner.compared - before;
    }

    private static void nothing() {
        sink = null;
    }
}
