package victim;

import com.sun.management.HotSpotDiagnosticMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.function.IntFunction;

/**
 * Exact object sizes of the JVM that runs, by two ways that must agree.
 *
 * <p>Measured: the thread's own count of allocated bytes, read before and after a known batch; it is
 * exact to the byte. Computed (arrays only): from the flags that decide headers and references.
 */
final class Layout {
    private static final int BATCH = 1_000;
    private static final int ROUNDS = 5;
    private static final Object[] KEPT = new Object[BATCH];
    private static final ThreadMXBean THREADS =
            (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final long SELF = Thread.currentThread().getId();

    private Layout() {}

    /**
     * Bytes of what one call of {@code maker} allocates, which must be the same for each call.
     *
     * <p>The least of several batches: now and then the JVM itself allocates on the thread (a link
     * that is resolved late), which can only add.
     */
    static long measured(IntFunction<Object> maker) {
        long bytes = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            bytes = Math.min(bytes, measureBatch(maker));
        }
        if (bytes % BATCH != 0) {
            throw new AssertionError(bytes + " bytes do not divide by " + BATCH + " equal objects");
        }
        return bytes / BATCH;
    }

    private static long measureBatch(IntFunction<Object> maker) {
        THREADS.getThreadAllocatedBytes(SELF);
        long before = THREADS.getThreadAllocatedBytes(SELF);
        for (int i = 0; i < BATCH; i++) {
            KEPT[i] = maker.apply(i);
        }
        long after = THREADS.getThreadAllocatedBytes(SELF);
        java.util.Arrays.fill(KEPT, null);
        return after - before;
    }

    /** Bytes of a primitive array, or of a reference array with {@code elementBytes} 0. */
    static long array(int elementBytes, long length) {
        long element = elementBytes == 0 ? referenceBytes() : elementBytes;
        return align(arrayHeader(element) + element * length);
    }

    /** The header checked against one measured array of each kind; fails on a surprise. */
    static void crossCheck() {
        expect("byte[40]", array(1, 40), measured(i -> new byte[40]));
        expect("long[5]", array(8, 5), measured(i -> new long[5]));
        expect("Object[7]", array(0, 7), measured(i -> new Object[7]));
        expect("char[0]", array(2, 0), measured(i -> new char[0]));
    }

    private static void expect(String what, long computed, long measured) {
        if (computed != measured) {
            throw new AssertionError(
                    what + ": computed " + computed + " bytes, measured " + measured);
        }
    }

    private static long referenceBytes() {
        return flag("UseCompressedOops") ? 4 : 8;
    }

    private static long arrayHeader(long elementBytes) {
        if (flag("UseCompactObjectHeaders")) {
            return elementBytes == 8 ? 16 : 12;
        }
        if (flag("UseCompressedClassPointers")) {
            return 16;
        }
        // JDK 23 packs small elements right behind the length (JDK-8139457).
        return Runtime.version().feature() >= 23 && elementBytes < 8 ? 20 : 24;
    }

    private static long align(long bytes) {
        return (bytes + 7) & ~7L;
    }

    /** A boolean flag's value; false where this JVM has no such flag. */
    private static boolean flag(String name) {
        try {
            HotSpotDiagnosticMXBean bean =
                    ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
            return Boolean.parseBoolean(bean.getVMOption(name).getValue());
        } catch (IllegalArgumentException absent) {
            return false;
        }
    }
}
