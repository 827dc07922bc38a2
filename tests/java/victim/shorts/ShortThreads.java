package victim.shorts;

import java.util.Map;
import victim.Protocol;

/**
 * Garbage beside many new threads.
 *
 * <pre>
 * run THREADS ARRAYS      so many threads, one after another, and arrays of 1,000 bytes in each
 * beside THREADS ARRAYS   the same in one thread, which starts one that makes nothing before each time
 * </pre>
 *
 * Both say "ran THREADS".
 */
public final class ShortThreads {
    private static final int LENGTH = 1000;

    private static volatile Object sink;

    private ShortThreads() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(
                Map.of(
                        "run", words -> run(Integer.parseInt(words[1]), Integer.parseInt(words[2]), true),
                        "beside",
                                words ->
                                        run(
                                                Integer.parseInt(words[1]),
                                                Integer.parseInt(words[2]),
                                                false)));
    }

    private static void run(int threads, int arrays, boolean inNew) throws InterruptedException {
        Runnable work = () -> make(arrays);
        for (int number = 0; number < threads; number++) {
            Thread thread = new Thread(inNew ? work : () -> {});
            thread.start();
            thread.join();
            if (!inNew) {
                work.run();
            }
        }
        Protocol.say("ran " + threads);
    }

    private static void make(int arrays) {
        for (int made = 0; made < arrays; made++) {
            sink = new byte[LENGTH];
        }
    }
}
