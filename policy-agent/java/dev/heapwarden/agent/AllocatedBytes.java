package dev.heapwarden.agent;

import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;

/**
 * The JVM's own figures of the bytes that its threads have allocated. On the thread of exact accounts alone. By reflection,
 * because a runtime may be without {@code jdk.management}: there the class cannot be initialised.
 */
final class AllocatedBytes {
    private static final Object THREADS;
    private static final Method ENABLED;
    private static final Method IDS;
    private static final Method BYTES;

    /** The JVM's sum with the threads that have ended; null in early releases of JDK 17. */
    private static final Method TOTAL;

    /** Without {@link #TOTAL}: what each thread had allocated when it was last seen. */
    private static Map<Long, Long> seen = new HashMap<>();

    /** Without {@link #TOTAL}: the same of threads that have ended, together. */
    private static long endedBytes;

    static {
        try {
            Class<?> bean = Class.forName("com.sun.management.ThreadMXBean", false, null);
            Class<?> factory = Class.forName("java.lang.management.ManagementFactory", false, null);
            THREADS = factory.getMethod("getPlatformMXBean", Class.class).invoke(null, bean);
            ENABLED = bean.getMethod("isThreadAllocatedMemoryEnabled");
            IDS = bean.getMethod("getAllThreadIds");
            BYTES = bean.getMethod("getThreadAllocatedBytes", long[].class);
            TOTAL = total(bean);
        } catch (ReflectiveOperationException missing) {
            throw new ExceptionInInitializerError(missing);
        }
    }

    private AllocatedBytes() {}

    private static Method total(Class<?> bean) {
        try {
            return bean.getMethod("getTotalThreadAllocatedBytes");
        } catch (NoSuchMethodException older) {
            return null;
        }
    }

    /**
     * Bytes that all threads have allocated since the JVM was started; -1 if it does not say. Without {@link
     * #TOTAL} what a thread allocated after it was last seen is missing, and all of a thread that nobody saw.
     */
    static long read() throws ReflectiveOperationException {
        if (!(Boolean) ENABLED.invoke(THREADS)) {
            return -1;
        }
        if (TOTAL != null) {
            return (Long) TOTAL.invoke(THREADS);
        }
        long[] threads = (long[]) IDS.invoke(THREADS);
        long[] bytes = (long[]) BYTES.invoke(THREADS, threads);
        Map<Long, Long> now = new HashMap<>();
        long sum = 0;
        for (int at = 0; at < threads.length; at++) {
            if (bytes[at] >= 0) {
                now.put(threads[at], bytes[at]);
                sum += bytes[at];
            }
        }
        for (Map.Entry<Long, Long> each : seen.entrySet()) {
            if (!now.containsKey(each.getKey())) {
                endedBytes += each.getValue();
            }
        }
        seen = now;
        return sum + endedBytes;
    }
}
