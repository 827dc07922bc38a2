package victim.ways.virtual;

import java.util.concurrent.CountDownLatch;
import victim.ways.Way;

/** Arrays of 1,000 bytes, with rests between, so that a virtual thread changes its carrier. */
public final class Virtual implements Way {
    private static Object last;

    @Override
    public Object run(int rounds) throws InterruptedException {
        Object last = null;
        for (int i = 0; i < rounds; i++) {
            last = new byte[1000];
            if (i % 100 == 0) {
                rest();
            }
        }
        return last;
    }

    /** Waits in this package, and then makes as many arrays. */
    public static void afterwards(CountDownLatch begin, int rounds) {
        boolean waits = true;
        while (waits) {
            try {
                begin.await();
                waits = false;
            } catch (InterruptedException again) {
                throw new IllegalStateException(again);
            }
        }
        for (int i = 0; i < rounds; i++) {
            last = new byte[1000];
        }
    }

    private static void rest() throws InterruptedException {
        // Of no account's code but this; the JDK's timers run on threads of nobody.
        Thread.yield();
    }
}
