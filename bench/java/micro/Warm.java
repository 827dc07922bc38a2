package micro;

/** Allocates at each depth in turn, with code that is compiled and stacks seen before. */
final class Warm {
    private static final int BYTES = 1024;
    private static final int BATCH = 256;
    /** Calls after which the second compiler has long compiled the chain. */
    private static final int WARM_UP_CALLS = 40_000;

    private Warm() {}

    /** Arguments: samples at each depth, then the depths. */
    public static void main(String[] args) throws Exception {
        Thread.currentThread().setContextClassLoader(Bench.service("shop"));
        long samples = Long.parseLong(args[0]);
        Chain[] chains = new Chain[args.length];
        // Every depth before the first clock, so that none is timed in a younger VM.
        for (int i = 1; i < args.length; i++) {
            chains[i] = Bench.chain(Integer.parseInt(args[i]));
            run(chains[i], 0, WARM_UP_CALLS);
        }
        for (int i = 1; i < args.length; i++) {
            run(chains[i], 0, WARM_UP_CALLS / 4);
            Thread.sleep(50);
            Stopwatch.start();
            run(chains[i], samples, 0);
            Stopwatch.report("warm", Integer.parseInt(args[i]));
        }
        Bench.pause("done");
    }

    /** This frame and the one of {@code main} are part of the depth. */
    private static void run(Chain chain, long samples, int calls) {
        do {
            for (int i = 0; i < BATCH; i++) {
                Bench.sink = chain.run(BYTES);
            }
            calls -= BATCH;
        } while (calls > 0 || Stopwatch.samples() < samples);
    }
}
