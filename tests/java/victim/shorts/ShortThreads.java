package victim.shorts;

import java.util.Map;
import victim.Protocol;

/**
 * Threads one after another, each of which makes a little garbage.
 *
 * <pre>
 * run THREADS ARRAYS   so many threads, and arrays of 1,000 bytes in each; says "ran THREADS"
 * </pre>
 */
public final class ShortThreads {
    private static final int LENGTH = 1000;

    private static volatile Object sink;

    private ShortThreads() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(
                Map.of("run", words -> run(Integer.parseInt(words[1]), Integer.parseInt(words[2]))));
    }

    private static void run(int threads, int arrays) throws InterruptedException {
        Runnable work =
                () -> {
                    for (int made = 0; made < arrays; made++) {
                        sink = new byte[LENGTH];
                    }
                };
        for (int number = 0; number < threads; number++) {
            Thread thread = new Thread(work);
            thread.start();
            thread.join();
        }
        Protocol.say("ran " + threads);
    }
}
