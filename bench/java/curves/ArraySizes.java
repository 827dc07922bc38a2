package curves;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/** How large byte arrays are in this JVM, by the thread's own count of what it allocates. */
final class ArraySizes {
    private static final int ALIGNMENT_BYTES = 8;
    private static final int LENGTH = 1_000;
    private static final int BATCH = 100;
    private static final int BATCHES = 5;

    /** Bytes beyond the length, by the length's rest when it is divided by the alignment. */
    private final int[] more = new int[ALIGNMENT_BYTES];

    ArraySizes() {
        for (int rest = 0; rest < ALIGNMENT_BYTES; rest++) {
            int length = LENGTH + rest;
            more[length % ALIGNMENT_BYTES] = (int) (measured(length) - length);
        }
    }

    /** Bytes of an array of that length. */
    int bytes(int length) {
        return length + more[length % ALIGNMENT_BYTES];
    }

    /** The least of several batches: something else may have been allocated in one. */
    private static long measured(int length) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        Sink sink = new Sink();
        long least = Long.MAX_VALUE;
        for (int batch = 0; batch < BATCHES; batch++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < BATCH; i++) {
                sink.last = new byte[length];
            }
            long after = threads.getCurrentThreadAllocatedBytes();
            least = Math.min(least, (after - before) / BATCH);
        }
        return least;
    }
}
