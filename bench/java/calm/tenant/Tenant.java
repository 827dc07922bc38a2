package calm.tenant;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A service that holds a given number of bytes, and whose threads make garbage at full speed.
 *
 * <p>It holds arrays of 16 bytes to 64 KiB, as many small ones as large ones by the logarithm. Now and then an
 * operation puts a new array of the same length in the place of one. Everything here allocates in frames of this
 * package, which are its account's own.
 */
public final class Tenant {
    private static final int SLOTS = 1 << 15;
    private static final int LEAST_LENGTH = 16;
    private static final int DOUBLINGS = 12;

    /** More than an array takes beside its elements. */
    private static final int HEADER = 32;

    /** An operation makes one of each, 6 KiB in all. */
    private static final int[] GARBAGE = {
        24, 24, 40, 40, 56, 72, 100, 140, 260, 420, 700, 1_500, 2_700
    };

    /** Operations of a thread from one replaced array to the next: about 1 MB of them a second. */
    private static final int REPLACE_EVERY = 1 << 15;

    private final byte[][] held;
    private final int arrays;
    private final long heldBytes;
    private final List<Worker> workers = new ArrayList<>();
    private volatile boolean stopped;

    /** Holds so many bytes, by the thread's own count. */
    public Tenant(long bytes) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        SplittableRandom random = new SplittableRandom(7);
        long before = threads.getCurrentThreadAllocatedBytes();
        byte[][] made = new byte[SLOTS][];
        int count = 0;
        long allocated = threads.getCurrentThreadAllocatedBytes() - before;
        while (bytes - allocated > HEADER) {
            int drawn = (int) (LEAST_LENGTH * Math.pow(2, DOUBLINGS * random.nextDouble()));
            made[count] = new byte[(int) Math.min(drawn, bytes - allocated - HEADER)];
            count++;
            allocated = threads.getCurrentThreadAllocatedBytes() - before;
        }
        held = made;
        arrays = count;
        heldBytes = allocated;
    }

    /** Bytes that are held, now and later. */
    public long heldBytes() {
        return heldBytes;
    }

    /** Starts so many threads. */
    public void start(int threads) {
        for (int i = 0; i < threads; i++) {
            Worker worker = new Worker(i);
            workers.add(worker);
            Thread thread = new Thread(worker, "tenant-" + i);
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Operations of all threads. */
    public long operations() {
        return workers.stream().mapToLong(worker -> worker.operations.get()).sum();
    }

    /** Operations that an error ended. */
    public long errors() {
        return workers.stream().mapToLong(worker -> worker.errors.get()).sum();
    }

    /** Ends the threads. */
    public void stop() {
        stopped = true;
    }

    private final class Worker implements Runnable {
        final AtomicLong operations = new AtomicLong();
        final AtomicLong errors = new AtomicLong();
        private final SplittableRandom random;
        private byte[] latest;

        Worker(int number) {
            random = new SplittableRandom(number);
        }

        @Override
        public void run() {
            long number = 0;
            while (!stopped) {
                try {
                    operation(++number);
                } catch (OutOfMemoryError refused) {
                    errors.lazySet(errors.get() + 1);
                }
                operations.lazySet(number);
            }
        }

        private void operation(long number) {
            for (int length : GARBAGE) {
                latest = new byte[length];
            }
            if (number % REPLACE_EVERY == 0) {
                int slot = random.nextInt(arrays);
                held[slot] = new byte[held[slot].length];
            }
        }
    }
}
