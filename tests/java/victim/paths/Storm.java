package victim.paths;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import victim.Protocol;

/** Allocates, starts processes and waits for them, loads classes, redeploys and starts threads, all at once. */
public final class Storm {
    static final Map<Integer, Kept> KEPT = new ConcurrentHashMap<>();
    private static final AtomicLong PROCESSES = new AtomicLong();
    private static final AtomicLong LOST = new AtomicLong();
    private static final AtomicLong CLASSES = new AtomicLong();
    private static final AtomicLong THREADS = new AtomicLong();
    private static final AtomicLong DEPLOYMENTS = new AtomicLong();

    private Storm() {}

    static final class Kept {
        final byte[] payload = new byte[2000];
    }

    public static void main(String[] arguments) throws Exception {
        for (int number = 0; number < 2000; number++) {
            KEPT.put(number, new Kept());
        }
        work("allocates", Storm::allocates);
        work("starts processes", Storm::startsProcesses);
        work("loads classes", Storm::loadsClasses);
        work("starts threads", Storm::startsThreads);
        work("redeploys", Storm::redeploys);
        Protocol.serve(
                Map.of(
                        "done",
                        words ->
                                Protocol.say(
                                        "done "
                                                + PROCESSES
                                                + " "
                                                + LOST
                                                + " "
                                                + CLASSES
                                                + " "
                                                + THREADS
                                                + " "
                                                + DEPLOYMENTS)));
    }

    private interface Turn {
        void take() throws Exception;
    }

    private static void work(String name, Turn turn) {
        Thread thread =
                new Thread(
                        () -> {
                            while (true) {
                                try {
                                    turn.take();
                                } catch (Exception e) {
                                    e.printStackTrace();
                                    LOST.incrementAndGet();
                                }
                            }
                        },
                        name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void allocates() {
        Deque<byte[]> recent = new ArrayDeque<>();
        for (int number = 0; number < 10_000; number++) {
            recent.add(new byte[500]);
            if (recent.size() > 2000) {
                recent.remove();
            }
        }
    }

    private static void startsProcesses() throws IOException, InterruptedException {
        Process process = new ProcessBuilder("sh", "-c", "exit 7").start();
        if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 7) {
            LOST.incrementAndGet();
        }
        PROCESSES.incrementAndGet();
    }

    private static void loadsClasses() throws Exception {
        URL own = Storm.class.getProtectionDomain().getCodeSource().getLocation();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {own}, null)) {
            Class<?> type = loader.loadClass("victim.paths.Storm$Turn");
            Object made =
                    Proxy.newProxyInstance(loader, new Class<?>[] {type}, (a, b, c) -> null);
            CLASSES.addAndGet(made.hashCode() == 0 ? 1 : 2);
        } catch (NullPointerException unboxed) {
            // The proxy answers null to hashCode.
            CLASSES.incrementAndGet();
        }
    }

    /** As a server does it: the old one ends, its loader is closed, a new one begins. */
    private static void redeploys() throws Exception {
        URL own = Storm.class.getProtectionDomain().getCodeSource().getLocation();
        ClassLoader platform = ClassLoader.getPlatformClassLoader();
        try (URLClassLoader loader = new URLClassLoader("shop", new URL[] {own}, platform)) {
            Class<?> type = loader.loadClass("victim.paths.Deployed");
            try (AutoCloseable deployed = (AutoCloseable) type.getConstructor().newInstance()) {
                Thread.sleep(20);
                DEPLOYMENTS.addAndGet(deployed.getClass().getClassLoader() == loader ? 1 : 0);
            }
        }
    }

    private static void startsThreads() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 20; number++) {
            Thread thread = new Thread(THREADS::incrementAndGet);
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Thread.sleep(5);
    }
}
