package victim;

import java.io.IOException;
import java.nio.channels.Selector;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Interrupts threads just as they begin to wait for input, by a selector. (A read of a pipe is no judge: JDK
 * 21 itself leaves one asleep now and then, for good.)
 *
 * <pre>
 * storm ROUNDS    so many threads, one after the other: asleep COUNT wrong COUNT
 * </pre>
 *
 * Asleep is one that an interrupt did not wake; wrong is one that woke without its interrupt.
 */
public final class Interrupts {
    /** Far longer than a thread that was woken needs on a busy machine. */
    private static final long LONG_MS = 20_000;

    private static volatile Object sink;
    private static volatile boolean wasRight;

    private Interrupts() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(
                Map.of("storm", words -> storm(Integer.parseInt(words[1]))));
    }

    private static void storm(int rounds) throws Exception {
        SplittableRandom random = new SplittableRandom(rounds);
        int asleep = 0;
        int wrong = 0;
        for (int round = 0; round < rounds; round++) {
            Selector selector = Selector.open();
            wasRight = false;
            Thread reader = new Thread(() -> await(selector));
            reader.start();
            long until = System.nanoTime() + random.nextInt(200_000);
            while (System.nanoTime() < until) {
                Thread.onSpinWait();
            }
            reader.interrupt();
            reader.join(LONG_MS);
            if (reader.isAlive()) {
                asleep++;
                selector.wakeup();
                reader.join();
            } else if (!wasRight) {
                wrong++;
            }
            selector.close();
        }
        Protocol.say("asleep " + asleep + " wrong " + wrong);
    }

    private static void await(Selector selector) {
        try {
            // The first allocation of a thread gives it its counter.
            sink = new byte[1];
            selector.select();
            wasRight = Thread.currentThread().isInterrupted();
        } catch (IOException other) {
            wasRight = false;
        }
    }
}
