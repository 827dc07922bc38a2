package tenant;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.LongFunction;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Machinery: what threads, class loaders and the JDK's caches have to do with. */
final class Works {
    private static final long PATIENCE_SECONDS = 150;
    private static final ConcurrentHashMap<String, Integer> SHARED = new ConcurrentHashMap<>();
    private static final ReentrantReadWriteLock LOCK = new ReentrantReadWriteLock();
    private static final Semaphore PERMITS = new Semaphore(3);
    private static final Logger LOGGER = Logger.getLogger("tenant.bazaar");

    private Works() {}

    /** To be serialized. */
    private static final class Order implements Serializable {
        private static final long serialVersionUID = 1;
        final long number;
        final ArrayList<String> lines;
        final TreeMap<Stall, long[]> counts = new TreeMap<>();

        Order(long number, ArrayList<String> lines) {
            this.number = number;
            this.lines = lines;
            counts.put(Stall.FILES, new long[] {number, number + 1});
        }
    }

    static Object serialization(long seed) throws IOException, ClassNotFoundException {
        ArrayList<String> lines = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            lines.add("line " + (i * seed) % 13);
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(new Order(seed, lines));
        }
        try (ObjectInputStream in =
                new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            Order order = (Order) in.readObject();
            return order.number + order.lines.hashCode() + order.counts.get(Stall.FILES)[1];
        }
    }

    static Object reflection(long seed) throws Throwable {
        @SuppressWarnings("unchecked")
        Callable<Object> proxy =
                (Callable<Object>)
                        Proxy.newProxyInstance(
                                Works.class.getClassLoader(),
                                new Class<?>[] {Callable.class, Runnable.class},
                                (self, method, arguments) -> method.getName() + seed);
        Method method = String.class.getMethod("repeat", int.class);
        Object array = Array.newInstance(long.class, (int) seed + 3);
        MethodHandle handle =
                MethodHandles.lookup()
                        .findVirtual(
                                String.class,
                                "concat",
                                MethodType.methodType(String.class, String.class));
        MethodHandle bound = MethodHandles.insertArguments(handle, 1, "bound" + seed);
        return proxy.call() + " " + method.invoke("ab" + seed, 3) + " " + Array.getLength(array)
                + " " + (String) bound.invokeExact("to ");
    }

    /** Loads classes that nobody has used yet: initialisers, lambdas, concatenations and records. */
    static Object classes(long seed) throws ReflectiveOperationException {
        @SuppressWarnings("unchecked")
        LongFunction<String> fresh =
                (LongFunction<String>)
                        new Copies()
                                .loadClass("tenant.Fresh")
                                .getDeclaredConstructor()
                                .newInstance();
        return fresh.apply(seed);
    }

    private static final class Copies extends ClassLoader {
        Copies() {
            super(Works.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null) {
                    return known;
                }
                return name.startsWith("tenant.Fresh")
                        ? findClass(name)
                        : super.loadClass(name, resolve);
            }
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            String path = name.replace('.', '/') + ".class";
            try (InputStream in = getParent().getResourceAsStream(path)) {
                byte[] code = in.readAllBytes();
                return defineClass(name, code, 0, code.length);
            } catch (IOException | RuntimeException | OutOfMemoryError e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    static Object futures(long seed) throws Exception {
        List<CompletableFuture<String>> parts = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            int part = i;
            parts.add(
                    CompletableFuture.supplyAsync(() -> "part" + part * seed)
                            .thenApplyAsync(text -> text + ".")
                            .thenCombine(
                                    CompletableFuture.supplyAsync(() -> "!".repeat(part)),
                                    String::concat));
        }
        return CompletableFuture.allOf(parts.toArray(new CompletableFuture<?>[0]))
                .thenApply(
                        all ->
                                parts.stream()
                                        .map(CompletableFuture::join)
                                        .collect(Collectors.joining("|")))
                .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    static Object executors(long seed) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(3, Works::daemon);
        try {
            List<Future<Integer>> futures = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                int task = i;
                futures.add(pool.submit(() -> ("task" + task * seed).hashCode()));
            }
            int sum = 0;
            for (Future<Integer> future : futures) {
                sum += future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            }
            return sum;
        } finally {
            pool.shutdown();
        }
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    static Object sharedMaps(long seed) {
        String prefix = Thread.currentThread().getName() + seed + "/";
        ConcurrentSkipListMap<String, Integer> skipped = new ConcurrentSkipListMap<>();
        CopyOnWriteArrayList<Integer> copied = new CopyOnWriteArrayList<>();
        ConcurrentHashMap<Integer, List<Integer>> own = new ConcurrentHashMap<>();
        int sum = 0;
        for (int i = 0; i < 200; i++) {
            String key = prefix + i;
            int value = i;
            sum += SHARED.computeIfAbsent(key, absent -> value * 3);
            skipped.merge("k" + i % 20, i, Integer::sum);
            copied.addIfAbsent(i % 30);
            own.computeIfAbsent(i % 70, absent -> new ArrayList<>()).add(i);
        }
        // Also what an interrupted run has left.
        SHARED.keySet().removeIf(key -> key.startsWith(prefix));
        long left = SHARED.keySet().stream().filter(key -> key.startsWith(prefix)).count();
        return sum + " " + left + " " + skipped + " " + copied.size() + " " + own.hashCode();
    }

    static Object locks(long seed) throws Exception {
        // A lock that a refused reader left behind would show here.
        if (!LOCK.writeLock().tryLock(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
            throw new TimeoutException("a lock is left locked");
        }
        LOCK.writeLock().unlock();
        ExecutorService pool = Executors.newFixedThreadPool(3, Works::daemon);
        try {
            List<Future<Long>> futures = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                futures.add(pool.submit(() -> read(seed)));
            }
            long sum = 0;
            for (Future<Long> future : futures) {
                sum += future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            }
            return sum;
        } finally {
            pool.shutdown();
        }
    }

    private static long read(long seed) throws Exception {
        if (!PERMITS.tryAcquire(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
            throw new TimeoutException("a permit is lost");
        }
        try {
            LOCK.readLock().lock();
            try {
                Map<Long, String> some = new HashMap<>();
                for (long i = 0; i < 50; i++) {
                    some.put(i * seed, "x" + i);
                }
                return some.size();
            } finally {
                LOCK.readLock().unlock();
            }
        } finally {
            PERMITS.release();
        }
    }

    static Object logging(long seed) {
        List<String> heard = new ArrayList<>();
        Handler handler =
                new Handler() {
                    @Override
                    public void publish(LogRecord entry) {
                        heard.add(entry.getLevel() + " " + entry.getMessage());
                    }

                    @Override
                    public void flush() {}

                    @Override
                    public void close() {}
                };
        Logger own = Logger.getAnonymousLogger();
        own.setUseParentHandlers(false);
        own.addHandler(handler);
        own.warning("warned of " + seed);
        LOGGER.fine("nobody hears");
        int[] numbers = IntStream.range(0, 300).map(i -> (int) (i * 7919 * (seed + 1) % 1_000)).toArray();
        Arrays.sort(numbers);
        return heard + " " + Arrays.hashCode(numbers);
    }
}
