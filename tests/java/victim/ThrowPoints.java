package victim;

import dev.heapwarden.MemoryQuotaExceededError;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * Brings code of {@code com.acme.orders} to places of many kinds and lets it allocate there.
 *
 * <pre>
 * await         until an allocation of the account is refused
 * place NAME    says "refused N harmed M": how often an error came out of it, and how often
 *               something was broken afterwards
 * </pre>
 */
public final class ThrowPoints {
    private static final int ROUNDS = 2_000;
    private static final int KEYS = 120;
    private static final long DEADLINE_NANOS = 120_000_000_000L;
    private static final Map<String, Place> PLACES = new TreeMap<>();
    private static final RuntimeException EARLIER = new RuntimeException("earlier");

    private static int refused;
    private static int harmed;

    private ThrowPoints() {}

    /** A task that may be refused. */
    private interface Task {
        void run() throws Exception;
    }

    private interface Place {
        void visit() throws Exception;
    }

    public static void main(String[] args) throws IOException {
        plainPlaces();
        handlers();
        collections();
        PLACES.put("initialiser", ThrowPoints::initialiser);
        PLACES.put("loader", ThrowPoints::loader);
        PLACES.put("timer", ThrowPoints::timer);
        PLACES.put("periodic", ThrowPoints::periodic);
        PLACES.put("logger", ThrowPoints::logger);
        PLACES.put("uncaught", ThrowPoints::uncaught);
        PLACES.put("cleaner", ThrowPoints::cleaner);
        Runtime.getRuntime().addShutdownHook(new Thread(ThrowPoints::hook));
        Map<String, Protocol.Command> commands = new HashMap<>();
        commands.put("await", words -> await());
        commands.put("place", words -> place(words[1]));
        Protocol.serve(commands);
    }

    private static void place(String name) throws Exception {
        refused = 0;
        harmed = 0;
        PLACES.get(name).visit();
        Protocol.say("refused " + refused + " harmed " + harmed);
    }

    private static void await() {
        long begun = System.nanoTime();
        refused = 0;
        while (refused == 0) {
            expect(System.nanoTime() - begun < DEADLINE_NANOS, "never refused");
            attempt(com.acme.orders.Places::array);
        }
    }

    private static boolean attempt(Task task) {
        try {
            task.run();
            return true;
        } catch (MemoryQuotaExceededError e) {
            refused++;
        } catch (LinkageError e) {
            harmed++;
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        return false;
    }

    private static void expect(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void often(String name, Task task) {
        PLACES.put(
                name,
                () -> {
                    for (int round = 0; round < ROUNDS; round++) {
                        attempt(task);
                    }
                });
    }

    private static void plainPlaces() {
        Runnable instance = com.acme.orders.Places::instance;
        often("instance", com.acme.orders.Places::instance);
        often("array", com.acme.orders.Places::array);
        often("arrays", com.acme.orders.Places::arrays);
        byte[] bytes = new byte[40];
        often("clone", () -> com.acme.orders.Places.copy(bytes));
        often("text", () -> com.acme.orders.Places.text(EARLIER, 7));
        often("builder", () -> com.acme.orders.Places.append(new StringBuilder()));
        often("library", () -> new com.acme.orders.Desk().run(() -> new org.lib.xml.Desk().run(instance)));
        often("below", () -> new com.acme.orders.deep.Desk().run(instance));
        List<Object> three = List.of(1, 2, 3);
        often("lambda", () -> com.acme.orders.Places.lambda(7));
        often("stream", () -> com.acme.orders.Places.stream(three));
    }

    private static void handlers() {
        often("catch", () -> com.acme.orders.Places.caught(EARLIER));
        often("finally", () -> expectEarlier(() -> com.acme.orders.Places.lastly(EARLIER)));
        AutoCloseable resource = com.acme.orders.Places::array;
        often(
                "close",
                () -> {
                    RuntimeException earlier = new RuntimeException("earlier");
                    try {
                        com.acme.orders.Places.close(resource, earlier);
                    } catch (RuntimeException e) {
                        expect(e == earlier, "another error came out");
                    }
                    refused += earlier.getSuppressed().length;
                });
    }

    private static void expectEarlier(Task task) throws Exception {
        try {
            task.run();
            throw new AssertionError("no error came out");
        } catch (RuntimeException e) {
            expect(e == EARLIER, "another error came out");
        }
    }

    private static void collections() {
        PLACES.put("list", ThrowPoints::list);
        PLACES.put("deque", () -> fill(new ArrayDeque<>()));
        PLACES.put("transfer", () -> fill(new LinkedTransferQueue<>()));
        PLACES.put("map", () -> fill(HashMap<Object, Object>::new));
        PLACES.put("linked", () -> fill(LinkedHashMap<Object, Object>::new));
        PLACES.put("sorted", () -> fill(TreeMap<Object, Object>::new));
        PLACES.put("concurrent", () -> fill(ConcurrentHashMap<Object, Object>::new));
        PLACES.put(
                "compute",
                () -> {
                    ConcurrentMap<Object, Object> map = new ConcurrentHashMap<>();
                    for (int key = 0; key < ROUNDS; key++) {
                        Integer number = key;
                        boolean done = attempt(() -> com.acme.orders.Places.compute(map, number));
                        harmed += done == map.containsKey(number) ? 0 : 1;
                    }
                    for (int key = 0; key < ROUNDS; key++) {
                        map.put(key, EARLIER);
                    }
                    harmed += map.size() == ROUNDS ? 0 : 1;
                });
    }

    /**
     * A list so long that compiled code, too, grows it in the open: a short array of references
     * made at a call could be one that the VM links with.
     */
    private static void list() {
        List<Object> list = new ArrayList<>(Collections.nCopies(200_000, EARLIER));
        int size = list.size();
        for (int round = 0; round < KEYS; round++) {
            size += attempt(() -> com.acme.orders.Places.add(list, EARLIER)) ? 1 : 0;
        }
        harmed += list.size() == size && !list.contains(null) ? 0 : 1;
    }

    /** Checks that the elements of additions that came back are there, and nothing else is. */
    private static void fill(Collection<Object> collection) {
        List<Object> expected = new ArrayList<>();
        for (int number = 0; number < KEYS; number++) {
            Integer what = number;
            if (attempt(() -> com.acme.orders.Places.add(collection, what))) {
                expected.add(what);
            }
        }
        harmed += new ArrayList<>(collection).equals(expected) ? 0 : 1;
    }

    /**
     * Checks that the entry of a put that came back is there. A map may hold the entry of one that did not, but
     * what it counts is what it holds.
     */
    private static void fill(java.util.function.Supplier<Map<Object, Object>> fresh) {
        for (int round = 0; round < ROUNDS / KEYS; round++) {
            Map<Object, Object> map = fresh.get();
            List<Object> expected = new ArrayList<>();
            for (int number = 0; number < KEYS; number++) {
                // Many of one bin, so that bins become trees.
                Key key = new Key(number);
                if (attempt(() -> com.acme.orders.Places.put(map, key))) {
                    expected.add(key);
                }
            }
            boolean whole = expected.stream().allMatch(key -> map.get(key) == key);
            int held = new ArrayList<>(map.keySet()).size();
            harmed += whole && map.size() == held ? 0 : 1;
        }
    }

    private static final class Key implements Comparable<Key> {
        private final int number;

        Key(int number) {
            this.number = number;
        }

        @Override
        public int hashCode() {
            return number % 3 == 0 ? number : number % 3;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).number == number;
        }

        @Override
        public int compareTo(Key other) {
            return Integer.compare(number, other.number);
        }
    }

    /** A loader that defines the class itself, so that it is initialised once more. */
    private static final class OwnFirst extends URLClassLoader {
        OwnFirst(URL[] urls) {
            super(urls, ThrowPoints.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                return name.endsWith(".Initialised") && findLoadedClass(name) == null
                        ? findClass(name)
                        : super.loadClass(name, resolve);
            }
        }
    }

    private static void initialiser() throws IOException {
        URL[] code = {ThrowPoints.class.getProtectionDomain().getCodeSource().getLocation()};
        for (int round = 0; round < 40; round++) {
            try (OwnFirst loader = new OwnFirst(code)) {
                for (int again = 0; again < 3; again++) {
                    attempt(() -> Class.forName("com.acme.orders.Initialised", true, loader));
                }
            }
        }
    }

    private static void loader() {
        ClassNotFoundException notFound = new ClassNotFoundException("none");
        for (int round = 0; round < 200; round++) {
            attempt(
                    () -> {
                        ClassLoader loader = new com.acme.orders.OwnLoader(notFound);
                        try {
                            loader.loadClass("no.such.Class");
                        } catch (ClassNotFoundException e) {
                            expect(e == notFound, "another error came out");
                        }
                    });
        }
    }

    private static void timer() throws InterruptedException {
        Timer timer = new Timer(true);
        AtomicInteger runs = new AtomicInteger();
        AtomicReference<Thread> runner = new AtomicReference<>();
        timer.schedule(
                new TimerTask() {
                    @Override
                    public void run() {
                        runner.set(Thread.currentThread());
                        com.acme.orders.Places.array();
                        runs.incrementAndGet();
                    }
                },
                0,
                1);
        harmed += reaches(runs, () -> hasEnded(runner.get())) ? 0 : 1;
        timer.cancel();
    }

    private static void periodic() throws InterruptedException {
        ScheduledExecutorService pool = Executors.newSingleThreadScheduledExecutor();
        AtomicInteger runs = new AtomicInteger();
        Runnable task =
                () -> {
                    com.acme.orders.Places.array();
                    runs.incrementAndGet();
                };
        ScheduledFuture<?> future = pool.scheduleAtFixedRate(task, 0, 1, TimeUnit.MILLISECONDS);
        harmed += reaches(runs, future::isDone) ? 0 : 1;
        pool.shutdownNow();
    }

    /** Whether so many runs come before that ends which runs them. */
    private static boolean reaches(AtomicInteger runs, java.util.function.BooleanSupplier ended)
            throws InterruptedException {
        for (int waits = 0; waits < 3_000 && runs.get() < 100 && !ended.getAsBoolean(); waits++) {
            Thread.sleep(20);
        }
        return runs.get() >= 100;
    }

    private static boolean hasEnded(Thread thread) {
        return thread != null && !thread.isAlive();
    }

    private static void logger() {
        Logger logger = Logger.getLogger("places");
        logger.setUseParentHandlers(false);
        logger.addHandler(
                new Handler() {
                    @Override
                    public void publish(LogRecord record) {
                        com.acme.orders.Places.array();
                    }

                    @Override
                    public void flush() {}

                    @Override
                    public void close() {}
                });
        for (int round = 0; round < 200; round++) {
            attempt(() -> logger.info("said"));
        }
    }

    private static void uncaught() throws InterruptedException {
        for (int round = 0; round < 50; round++) {
            AtomicInteger handled = new AtomicInteger();
            Thread thread =
                    new Thread(
                            () -> {
                                throw EARLIER;
                            });
            thread.setUncaughtExceptionHandler(
                    (of, error) -> {
                        com.acme.orders.Places.array();
                        handled.set(1);
                    });
            thread.start();
            thread.join();
            harmed += 1 - handled.get();
        }
    }

    private static void cleaner() {
        Cleaner cleaner = Cleaner.create();
        for (int round = 0; round < 200; round++) {
            Cleaner.Cleanable cleanable =
                    cleaner.register(new Object(), com.acme.orders.Places::array);
            attempt(cleanable::clean);
        }
    }

    private static void hook() {
        refused = 0;
        for (int round = 0; round < 100; round++) {
            attempt(com.acme.orders.Places::array);
        }
        System.out.println("hook done, refused " + refused);
    }
}
