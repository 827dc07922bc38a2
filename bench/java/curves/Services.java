package curves;

import java.net.URL;
import java.net.URLClassLoader;

/** One thread that works for many services in turn. */
final class Services implements Work {
    /** Sampled for certain (but for one in 55) at an interval of 64 KiB. */
    private static final int FIRST_BYTES = 256 << 10;
    /** Arrays for one service before the next one's turn. */
    private static final int TURN = 16;

    private final ClassLoader[] services;
    private final int length;
    private final int steps;

    /** So many services, and arrays of that length after so many steps. */
    Services(int count, int length, int steps) {
        this.length = length;
        this.steps = steps;
        services = new ClassLoader[count];
        for (int i = 0; i < count; i++) {
            services[i] = named("service-" + i);
        }
        Sink sink = new Sink();
        // Each is met before the clock runs, twice.
        for (int i = 0; i < 2 * count; i++) {
            Thread.currentThread().setContextClassLoader(services[i % count]);
            sink.last = new byte[FIRST_BYTES];
        }
    }

    @Override
    public long run(long operations) {
        Thread self = Thread.currentThread();
        Sink sink = new Sink();
        long state = 1;
        int next = 0;
        for (long i = 0; i < operations; i++) {
            if (i % TURN == 0) {
                self.setContextClassLoader(services[next]);
                next = next + 1 == services.length ? 0 : next + 1;
            }
            state = Churn.compute(state, steps);
            sink.last = new byte[length];
        }
        return state;
    }

    @Override
    public int arrayLength() {
        return length;
    }

    /** A loader that stands for a deployed service. */
    static ClassLoader named(String name) {
        return new URLClassLoader(name, new URL[0], Services.class.getClassLoader());
    }
}
