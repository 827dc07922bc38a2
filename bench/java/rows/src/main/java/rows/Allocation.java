package rows;

import com.sun.management.ThreadMXBean;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;

/** Counts the bytes that all threads of the JVM have allocated. */
final class Allocation {
    private static final ThreadMXBean THREADS =
            (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** Asks for all threads, those that ended too; null before JDK 21. */
    private static final MethodHandle TOTAL = total();

    /** Bytes that threads of a {@link Crew} had allocated when they ended. */
    private static final AtomicLong ENDED_BYTES = new AtomicLong();

    private Allocation() {}

    /**
     * Bytes allocated since the JVM started. Before JDK 21, those of threads that ended are missing,
     * except of threads of a {@link Crew}.
     */
    static long bytes() {
        if (TOTAL != null) {
            try {
                return (long) TOTAL.invokeExact(THREADS);
            } catch (Throwable e) {
                throw new IllegalStateException("the JVM does not tell what was allocated", e);
            }
        }
        long bytes = ENDED_BYTES.get();
        for (long ofThread : THREADS.getThreadAllocatedBytes(THREADS.getAllThreadIds())) {
            // -1 is a thread that ended in between.
            bytes += Math.max(0, ofThread);
        }
        return bytes;
    }

    /** The calling thread ends and will not be asked again. */
    static void ends() {
        ENDED_BYTES.addAndGet(THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()));
    }

    private static MethodHandle total() {
        try {
            return MethodHandles.lookup()
                    .findVirtual(
                            ThreadMXBean.class,
                            "getTotalThreadAllocatedBytes",
                            MethodType.methodType(long.class));
        } catch (NoSuchMethodException e) {
            return null;
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
