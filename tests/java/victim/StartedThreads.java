package victim;

import java.lang.management.ManagementFactory;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;

/**
 * A server whose services start threads, which wait until the service's are ended.
 *
 * <pre>
 * deploy NAME            a fresh loader of that name
 * start NAME WAY COUNT   COUNT threads, by
 *                          plain    code of nobody, while NAME's loader is the context class loader
 *                          pool     a pool of the JDK made then
 *                          task     a task of NAME's code, without a context class loader
 *                          own      a class of NAME's that is a thread, without one
 *                          serving  the server itself; then they have NAME's loader, as in a request
 *                          shared   the JDK's common pool, first used on behalf of NAME
 * end NAME               ends them all
 * unready                starts a thread of a class whose initialiser does not end, until
 * ready
 * total                  the live threads, by the JVM itself, without those of the agent
 * </pre>
 */
public final class StartedThreads {
    private static final Map<String, ClassLoader> DEPLOYED = new HashMap<>();
    private static final Map<String, CountDownLatch> LATCHES = new HashMap<>();
    private static final Map<String, List<Thread>> THREADS = new HashMap<>();
    private static final Map<String, List<ExecutorService>> POOLS = new HashMap<>();
    private static final CountDownLatch UNREADY = new CountDownLatch(2);
    private static final CountDownLatch READY = new CountDownLatch(1);
    private static URL[] code;

    private StartedThreads() {}

    public static void main(String[] args) throws Exception {
        code = new URL[] {Path.of(args[0]).toUri().toURL()};
        Protocol.serve(
                Map.of(
                        "deploy", words -> deploy(words[1]),
                        "start", words -> start(words[1], words[2], Integer.parseInt(words[3])),
                        "end", words -> end(words[1]),
                        "unready", words -> unready(),
                        "ready", words -> READY.countDown(),
                        "total", words -> total()));
    }

    private static void deploy(String name) {
        DEPLOYED.put(name, new URLClassLoader(name, code, StartedThreads.class.getClassLoader()));
    }

    private static void start(String name, String way, int count) throws Exception {
        ClassLoader loader = DEPLOYED.get(name);
        CountDownLatch latch = LATCHES.computeIfAbsent(name, none -> new CountDownLatch(1));
        CountDownLatch begun = new CountDownLatch(count);
        Thread current = Thread.currentThread();
        ClassLoader before = current.getContextClassLoader();
        boolean isContext = List.of("plain", "pool", "shared").contains(way);
        Runnable waiting = () -> waitFor(begun, latch);
        if (way.equals("task") || way.equals("own")) {
            current.setContextClassLoader(null);
        } else if (isContext) {
            current.setContextClassLoader(loader);
        }
        try {
            switch (way) {
                case "plain" -> threads(name, count, () -> new Thread(waiting, "plain"));
                case "task" -> {
                    Runnable task = (Runnable) make(loader, "tenant.Waiting", latch);
                    threads(name, count, () -> new Thread(task, "task"));
                }
                case "own" ->
                        threads(name, count, () -> (Thread) make(loader, "tenant.Waiting$Own", latch));
                case "serving" ->
                        threads(
                                name,
                                count,
                                () ->
                                        new Thread(
                                                () -> {
                                                    Thread.currentThread()
                                                            .setContextClassLoader(loader);
                                                    waiting.run();
                                                },
                                                "serving"));
                case "pool" -> {
                    ExecutorService pool = Executors.newFixedThreadPool(count);
                    POOLS.computeIfAbsent(name, none -> new ArrayList<>()).add(pool);
                    for (int i = 0; i < count; i++) {
                        pool.execute(waiting);
                    }
                }
                case "shared" -> {
                    for (int i = 0; i < count; i++) {
                        ForkJoinPool.commonPool().execute(waiting);
                    }
                }
                default -> throw new IllegalArgumentException(way);
            }
        } finally {
            current.setContextClassLoader(before);
        }
        if (!way.equals("task") && !way.equals("own")) {
            begun.await();
        }
    }

    /** A maker of one thread. */
    private interface Maker {
        Thread make() throws Exception;
    }

    private static void threads(String name, int count, Maker maker) throws Exception {
        for (int i = 0; i < count; i++) {
            Thread thread = maker.make();
            THREADS.computeIfAbsent(name, none -> new ArrayList<>()).add(thread);
            thread.start();
        }
    }

    private static Object make(ClassLoader loader, String name, CountDownLatch latch)
            throws ReflectiveOperationException {
        return Class.forName(name, true, loader)
                .getDeclaredConstructor(CountDownLatch.class)
                .newInstance(latch);
    }

    private static void waitFor(CountDownLatch begun, CountDownLatch latch) {
        begun.countDown();
        try {
            latch.await();
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static void end(String name) throws InterruptedException {
        LATCHES.remove(name).countDown();
        POOLS.getOrDefault(name, List.of()).forEach(ExecutorService::shutdown);
        POOLS.remove(name);
        for (Thread thread : THREADS.getOrDefault(name, List.of())) {
            thread.join();
        }
        THREADS.remove(name);
    }

    /** A thread of a class whose initialiser has started it, and waits. */
    private static final class Unready extends Thread {
        static {
            new Unready().start();
            waitFor(UNREADY, READY);
        }

        @Override
        public void run() {
            waitFor(UNREADY, READY);
        }
    }

    private static void unready() throws InterruptedException {
        new Thread(Unready::new, "initialiser").start();
        UNREADY.await();
    }

    private static void total() {
        long agents =
                Thread.getAllStackTraces().keySet().stream()
                        .filter(thread -> thread.getName().startsWith("heapwarden-"))
                        .count();
        int all = ManagementFactory.getThreadMXBean().getThreadCount();
        Protocol.say("total " + (all - agents));
    }
}
