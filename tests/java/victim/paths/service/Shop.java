package victim.paths.service;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiFunction;

/** A service of {@code TenServices}: each has its own copy of this class. */
public final class Shop implements BiFunction<String, Integer, Object> {
    static final Map<Integer, Entry> ENTRIES = new HashMap<>();
    static final ThreadLocal<List<Pooled>> LOCAL = new ThreadLocal<>();

    private static volatile boolean isBusy;
    private static volatile Object recent;

    /** Made by whoever deploys the service. */
    public Shop() {}

    static final class Entry {
        long a0, a1, a2, a3, a4, a5, a6, a7, a8, a9;
        final byte[] payload = new byte[120];
    }

    static final class Pooled {
        long a0, a1, a2, a3, a4, a5, a6, a7, a8, a9;
    }

    static final class Given {
        long a0, a1, a2, a3, a4, a5, a6, a7, a8, a9;
    }

    @Override
    public Object apply(String order, Integer count) {
        return switch (order) {
            case "hold" -> hold(count);
            case "give" -> give(count);
            case "pool" -> pool(count);
            case "begin" -> begin();
            case "end" -> end();
            default -> throw new IllegalArgumentException(order);
        };
    }

    private static Object hold(int count) {
        for (int number = 0; number < count; number++) {
            ENTRIES.put(number, new Entry());
        }
        return null;
    }

    /** Returns the objects that the caller keeps. */
    private static List<Object> give(int count) {
        List<Object> given = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            given.add(new Given());
        }
        return given;
    }

    /** Starts a thread of the service that keeps its objects, and waits until it is filled. */
    private static Object pool(int count) {
        CountDownLatch filled = new CountDownLatch(1);
        started("pool", () -> fill(count, filled));
        try {
            filled.await();
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
        return null;
    }

    private static void fill(int count, CountDownLatch filled) {
        List<Pooled> own = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            own.add(new Pooled());
        }
        LOCAL.set(own);
        filled.countDown();
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    /** Allocates until it is told to end. */
    private static Object begin() {
        isBusy = true;
        started(
                "busy",
                () -> {
                    while (isBusy) {
                        recent = new byte[1000];
                    }
                    recent = null;
                });
        return null;
    }

    private static Object end() {
        isBusy = false;
        return null;
    }

    private static void started(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setContextClassLoader(Shop.class.getClassLoader());
        thread.setDaemon(true);
        thread.start();
    }
}
