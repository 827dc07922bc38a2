package micro;

/** One thread that works for many services in turn. */
final class Services {
    private static final int BYTES = 1024;
    /** Allocations for one service before the next one's turn: about two samples. */
    private static final int TURN = 16;

    private Services() {}

    /** Arguments: how many services, samples, the depth. */
    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        long samples = Long.parseLong(args[1]);
        int depth = Integer.parseInt(args[2]);
        ClassLoader[] services = new ClassLoader[count];
        for (int i = 0; i < count; i++) {
            services[i] = Bench.service("service-" + i);
        }
        Chain chain = Bench.chain(depth);
        // Each is met, and named, before the clock runs.
        run(chain, services, 0, Math.max(4 * count, 2_000));
        Thread.sleep(1_000);
        Stopwatch.start();
        run(chain, services, samples, 0);
        Stopwatch.report("services", depth);
        Bench.pause("done");
    }

    private static void run(Chain chain, ClassLoader[] services, long samples, int turns) {
        Thread self = Thread.currentThread();
        int next = 0;
        do {
            self.setContextClassLoader(services[next]);
            next = next + 1 == services.length ? 0 : next + 1;
            for (int i = 0; i < TURN; i++) {
                Bench.sink = chain.run(BYTES);
            }
            turns--;
        } while (turns > 0 || Stopwatch.samples() < samples);
    }
}
