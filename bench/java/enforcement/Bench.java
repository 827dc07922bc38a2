package enforcement;

import com.sun.management.ThreadMXBean;
import enforcement.tenant.Tenant;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.function.Supplier;

/** Shared by the programs: how they speak with the bench, and how large their objects are. */
final class Bench {
    private static final int BATCH = 100;
    private static final int BATCHES = 5;

    private Bench() {}

    /** Prints a line and waits until the bench has looked at the JVM from outside. */
    static void pause(String line) throws IOException {
        System.out.println(line);
        System.in.read();
    }

    /** A tenant with objects of the sizes that this JVM gives them. */
    static Tenant tenant(int length, long limitBytes) {
        return new Tenant(
                length, limitBytes, bytes(() -> new byte[length]), bytes(Tenant::block));
    }

    /** Bytes of what one call makes: by the thread's own count, the least of several batches. */
    private static long bytes(Supplier<Object> maker) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        Object[] made = new Object[1];
        long least = Long.MAX_VALUE;
        for (int batch = 0; batch < BATCHES; batch++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < BATCH; i++) {
                made[0] = maker.get();
            }
            long after = threads.getCurrentThreadAllocatedBytes();
            least = Math.min(least, (after - before) / BATCH);
        }
        return least;
    }
}
