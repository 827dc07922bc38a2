package victim;

import com.acme.tenant.Greedy;
import java.util.Map;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A greedy tenant and its neighbours, all on virtual threads of the same carriers.
 *
 * <pre>
 * take LENGTH COUNT            the tenant holds COUNT arrays, on this thread; says "taken N" of them
 * crowd GREEDY GOOD SECONDS LENGTH   so many virtual threads of the tenant go on taking, each with a rest of a
 *                              millisecond, and go on when they are refused; beside them neighbours run each
 *                              millisecond; says "good RUNS refused TIMES other ERRORS" of each second
 * </pre>
 */
public final class VirtualNeighbours {
    private static final AtomicInteger GOOD = new AtomicInteger();
    private static final AtomicInteger REFUSED = new AtomicInteger();
    private static final AtomicInteger OTHER = new AtomicInteger();
    private static volatile boolean goesOn;
    private static volatile byte[] last;

    private VirtualNeighbours() {}

    public static void main(String[] args) throws Exception {
        Protocol.serve(
                Map.of("take", VirtualNeighbours::take, "crowd", VirtualNeighbours::crowd));
    }

    private static void take(String[] words) {
        int length = Integer.parseInt(words[1]);
        int taken = 0;
        for (int i = 0; i < Integer.parseInt(words[2]); i++) {
            taken += Greedy.take(length) == null ? 1 : 0;
        }
        Protocol.say("taken " + taken);
    }

    private static void crowd(String[] words) throws Exception {
        int length = Integer.parseInt(words[4]);
        ThreadFactory factory = ExactWays.factory();
        goesOn = true;
        start(factory, Integer.parseInt(words[2]), VirtualNeighbours::runGood);
        start(factory, Integer.parseInt(words[1]), () -> runGreedy(length));
        // Until the methods on its stack are known, which takes its time on a busy machine, a refusal is put off.
        for (int waits = 0; REFUSED.get() == 0 && waits < 3_000; waits++) {
            Thread.sleep(20);
        }
        GOOD.set(0);
        REFUSED.set(0);
        for (int second = 0; second < Integer.parseInt(words[3]); second++) {
            Thread.sleep(1_000);
            Protocol.say(
                    "good "
                            + GOOD.getAndSet(0)
                            + " refused "
                            + REFUSED.getAndSet(0)
                            + " other "
                            + OTHER.getAndSet(0));
        }
        goesOn = false;
    }

    private interface Turn {
        void run() throws InterruptedException;
    }

    private static void start(ThreadFactory factory, int count, Turn turn) {
        Runnable turns =
                () -> {
                    try {
                        while (goesOn) {
                            turn.run();
                            Thread.sleep(1);
                        }
                    } catch (InterruptedException ended) {
                        Thread.currentThread().interrupt();
                    }
                };
        for (int i = 0; i < count; i++) {
            factory.newThread(turns).start();
        }
    }

    private static void runGood() {
        last = new byte[500];
        GOOD.incrementAndGet();
    }

    private static void runGreedy(int length) {
        Throwable refused = Greedy.take(length);
        if (refused != null) {
            boolean isOurs = refused.getClass().getName().startsWith("dev.heapwarden.");
            (isOurs ? REFUSED : OTHER).incrementAndGet();
        }
    }
}
