package victim.paths;

import java.util.ArrayList;
import java.util.EventListener;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import victim.Protocol;

/** Keeps objects in six ways, each of a class of its own, and watches how long it stands still. */
public final class SixHolders {
    static final Map<Integer, Mapped> MAP = new HashMap<>();
    static final Map<Object, Object> RAW = new HashMap<>();
    static final Bus BUS = new Bus();
    static final List<Item> QUEUE = new LinkedList<>();
    static final ThreadLocal<List<Pooled>> LOCAL = new ThreadLocal<>();
    static final Map<String, Context> CONTEXTS = new ConcurrentHashMap<>();
    /** Arrays that make a heap large. */
    static final List<Object[]> BALLAST = new ArrayList<>();

    private SixHolders() {}

    static final class Mapped {
        final byte[] payload = new byte[900];
    }

    static final class Listener implements EventListener {
        final byte[] payload = new byte[900];
    }

    static final class Bus {
        final List<EventListener> listeners = new ArrayList<>();
    }

    /** Large in itself: there are few of them, and some must be sampled. */
    static final class Item {
        long a0, a1, a2, a3, a4, a5, a6, a7, a8, a9;
        long b0, b1, b2, b3, b4, b5, b6, b7, b8, b9;
        long c0, c1, c2, c3, c4, c5, c6, c7, c8, c9;
        long d0, d1, d2, d3, d4, d5, d6, d7, d8, d9;
    }

    static final class Pooled {
        final byte[] payload = new byte[900];
    }

    static final class Context {
        final Map<String, Object> attributes = new ConcurrentHashMap<>();
    }

    static final class Cache {
        final Map<Integer, Cached> entries = new LinkedHashMap<>();
    }

    static final class Cached {
        final byte[] payload = new byte[900];
    }

    public static void main(String[] arguments) throws Exception {
        Watcher watcher = new Watcher();
        watcher.setDaemon(true);
        Protocol.serve(
                Map.of(
                        "hold", words -> hold(),
                        "grow", words -> grow(Integer.parseInt(words[1])),
                        "watch", words -> watcher.begin(),
                        "worst", words -> Protocol.say("worst " + watcher.worst())));
    }

    private static void hold() throws InterruptedException {
        Cache cache = new Cache();
        Context context = new Context();
        context.attributes.put("cache", cache);
        CONTEXTS.put("/shop", context);
        for (int number = 0; number < 3000; number++) {
            MAP.put(number, new Mapped());
            RAW.put(number, new byte[1300]);
            BUS.listeners.add(new Listener());
            cache.entries.put(number, new Cached());
        }
        for (int number = 0; number < 1000; number++) {
            QUEUE.add(new Item());
        }
        CountDownLatch filled = new CountDownLatch(1);
        Thread pool =
                new Thread(
                        () -> {
                            List<Pooled> own = new ArrayList<>();
                            for (int number = 0; number < 3000; number++) {
                                own.add(new Pooled());
                            }
                            LOCAL.set(own);
                            own = null;
                            filled.countDown();
                            try {
                                Thread.sleep(Long.MAX_VALUE);
                            } catch (InterruptedException end) {
                                Thread.currentThread().interrupt();
                            }
                        },
                        "pool-7");
        pool.setDaemon(true);
        pool.start();
        filled.await();
    }

    /** Makes so many objects of 24 bytes, and arrays that hold them. */
    private static void grow(int thousands) {
        for (int thousand = 0; thousand < thousands; thousand++) {
            Object[] piece = new Object[1000];
            for (int number = 0; number < piece.length; number++) {
                piece[number] = new Object[1];
            }
            BALLAST.add(piece);
        }
    }

    /** Notices how long it was kept from running. */
    private static final class Watcher extends Thread {
        private volatile long worstNanos;

        void begin() {
            worstNanos = 0;
            if (getState() == State.NEW) {
                start();
            }
        }

        double worst() {
            return worstNanos / 1e6;
        }

        @Override
        public void run() {
            long last = System.nanoTime();
            while (true) {
                try {
                    Thread.sleep(1);
                } catch (InterruptedException end) {
                    return;
                }
                long now = System.nanoTime();
                worstNanos = Math.max(worstNanos, now - last);
                last = now;
            }
        }
    }
}
