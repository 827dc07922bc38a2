package victim;

import java.util.concurrent.atomic.AtomicInteger;

/** Allocates under a context class loader, in a class without a string constant of its own. */
final class Filler {
    private Filler() {}

    /** Allocates nothing but the items while the context loader is set. */
    static void fill(Object[] slots, int from, int to, ClassLoader context, int length) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(context);
        try {
            for (int i = from; i < to; i++) {
                slots[i] = new byte[length];
            }
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /** One item, allocated when two threads that share {@code arrived} have come so far. */
    static void fillTogether(
            Object[] slots, int at, ClassLoader context, int length, AtomicInteger arrived) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(context);
        try {
            arrived.incrementAndGet();
            for (int turn = 0; arrived.get() < 2 * (at + 1); turn++) {
                if (turn > 10_000) {
                    // The other one has no processor.
                    Thread.yield();
                }
            }
            slots[at] = new byte[length];
        } finally {
            thread.setContextClassLoader(before);
        }
    }
}
