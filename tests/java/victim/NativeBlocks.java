package victim;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.Selector;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;

/**
 * A server whose services take native memory, and knows how much.
 *
 * <pre>
 * deploy NAME                a fresh loader of that name
 * take NAME WAY COUNT BYTES  COUNT blocks of BYTES while NAME's loader is the context class loader, by
 *                              direct   ByteBuffer.allocateDirect
 *                              arena    Arena.ofShared().allocate
 *                              unsafe   Unsafe.allocateMemory
 *                              grown    the same, and then reallocateMemory: taken with a quarter, grown to BYTES
 *                              virtual  allocateDirect on a virtual thread
 * tries NAME WAY COUNT BYTES MS  the same, one block each MS milliseconds, and says how many were given, how many were
 *                              refused, and the last error's message
 *                              (the way "dropped": direct buffers that nobody keeps)
 * initialise NAME            a class takes a direct buffer of a MiB when it is initialised
 * io NAME                    selectors, a path, and writes of many heap buffers at once to a file
 * drop NAME BY               gives all its blocks back, while BY's loader is the context class loader; direct buffers
 *                            are only forgotten
 * storm NAME THREADS TURNS   THREADS threads of NAME take and free blocks at random, a tenth of them each other's; then
 *                            it says how many bytes are left, which "drop" gives back
 * turns NAME OTHER COUNT     one thread takes COUNT blocks of 104 bytes as fast as it can, in turn for both
 * undeploy NAME              forgets the loader, and keeps the blocks
 * pool                       the direct memory of the JVM, by itself
 * </pre>
 */
public final class NativeBlocks {
    private static final Map<String, ClassLoader> DEPLOYED = new HashMap<>();
    private static final Map<String, List<Object>> BUFFERS = new HashMap<>();
    private static final Map<String, List<Object>> ARENAS = new HashMap<>();
    private static final Map<String, List<Long>> ADDRESSES = new HashMap<>();

    private static final MethodHandle ALLOCATE = unsafe("allocateMemory", long.class, long.class);
    private static final MethodHandle REALLOCATE =
            unsafe("reallocateMemory", long.class, long.class, long.class);
    private static final MethodHandle FREE = unsafe("freeMemory", void.class, long.class);

    private NativeBlocks() {}

    public static void main(String[] args) throws Exception {
        Protocol.serve(
                Map.of(
                        "deploy", words -> deploy(words[1]),
                        "take", words -> take(words[1], words[2], number(words[3]), number(words[4])),
                        "tries", words -> tries(words[1], words[2], words),
                        "initialise", words -> initialise(words[1]),
                        "io", words -> within(words[1], NativeBlocks::io),
                        "drop", words -> drop(words[1], words[2]),
                        "storm", words -> storm(words[1], number(words[2]), number(words[3])),
                        "turns", words -> turns(words[1], words[2], number(words[3])),
                        "undeploy", words -> DEPLOYED.remove(words[1]),
                        "pool", words -> Protocol.say("pool " + pool().getMemoryUsed())));
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private static MethodHandle unsafe(String name, Class<?> result, Class<?>... arguments) {
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            var field = type.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            MethodType as = MethodType.methodType(result, arguments);
            return MethodHandles.lookup().findVirtual(type, name, as).bindTo(field.get(null));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static long allocate(long bytes) {
        try {
            return (long) ALLOCATE.invokeExact(bytes);
        } catch (OutOfMemoryError e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static long reallocate(long address, long bytes) {
        try {
            return (long) REALLOCATE.invokeExact(address, bytes);
        } catch (OutOfMemoryError e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static void free(long address) {
        try {
            FREE.invokeExact(address);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static void deploy(String name) {
        DEPLOYED.put(
                name, new URLClassLoader(name, new URL[0], NativeBlocks.class.getClassLoader()));
    }

    /** Runs it while the loader of a service is the context class loader. */
    private static <T> T within(String name, Callable<T> work) throws Exception {
        Thread current = Thread.currentThread();
        ClassLoader before = current.getContextClassLoader();
        current.setContextClassLoader(DEPLOYED.get(name));
        try {
            return work.call();
        } finally {
            current.setContextClassLoader(before);
        }
    }

    private static <T> List<T> of(Map<String, List<T>> map, String name) {
        return map.computeIfAbsent(name, none -> new ArrayList<>());
    }

    private static void take(String name, String way, int count, int bytes) throws Exception {
        within(
                name,
                () -> {
                    if (way.equals("virtual")) {
                        onVirtualThread(() -> blocks(name, "direct", count, bytes));
                    } else {
                        blocks(name, way, count, bytes);
                    }
                    return null;
                });
    }

    private static void tries(String name, String way, String[] words) throws Exception {
        int last = words.length - 1;
        int count = number(words[last - 2]);
        int bytes = number(words[last - 1]);
        int given = 0;
        String message = "";
        for (int i = 0; i < count; i++) {
            try {
                take(name, way, 1, bytes);
                given++;
            } catch (OutOfMemoryError e) {
                message = e.getMessage();
            }
            Thread.sleep(number(words[last]));
        }
        Protocol.say("given " + given + " refused " + (count - given) + " " + message);
    }

    /** Fails for ever if its buffer is refused. */
    private static final class Initialised {
        static final ByteBuffer KEPT = ByteBuffer.allocateDirect(1 << 20);
    }

    private static void initialise(String name) throws Exception {
        within(name, () -> Initialised.KEPT.capacity());
        Protocol.say("initialised");
    }

    private static Void io() throws Exception {
        for (int i = 0; i < 50; i++) {
            Selector.open().close();
        }
        Path file = Files.createTempFile("io", null);
        ByteBuffer[] many = new ByteBuffer[500];
        Arrays.setAll(many, i -> ByteBuffer.allocate(5000));
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(many);
        }
        Files.delete(file);
        Protocol.say("done");
        return null;
    }

    private static void onVirtualThread(Runnable work) throws Exception {
        // The API is of JDK 21, and these classes are of 17.
        MethodType starts = MethodType.methodType(Thread.class, Runnable.class);
        try {
            MethodHandle start =
                    MethodHandles.lookup().findStatic(Thread.class, "startVirtualThread", starts);
            ((Thread) start.invokeExact(work)).join();
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static void blocks(String name, String way, int count, int bytes) {
        for (int i = 0; i < count; i++) {
            switch (way) {
                case "direct" -> of(BUFFERS, name).add(ByteBuffer.allocateDirect(bytes));
                case "dropped" -> ByteBuffer.allocateDirect(bytes);
                case "arena" -> of(ARENAS, name).add(arena(bytes));
                case "unsafe" -> of(ADDRESSES, name).add(allocate(bytes));
                case "grown" -> {
                    long address = allocate(bytes / 4);
                    of(ADDRESSES, name).add(address);
                    of(ADDRESSES, name).set(of(ADDRESSES, name).size() - 1, reallocate(address, bytes));
                }
                default -> throw new IllegalArgumentException(way);
            }
        }
    }

    /** A shared arena with one segment; the API is of JDK 22. */
    private static Object arena(long bytes) {
        try {
            Class<?> type = Class.forName("java.lang.foreign.Arena");
            Object arena = type.getMethod("ofShared").invoke(null);
            type.getMethod("allocate", long.class, long.class).invoke(arena, bytes, 1L);
            return arena;
        } catch (java.lang.reflect.InvocationTargetException e) {
            if (e.getCause() instanceof OutOfMemoryError refused) {
                throw refused;
            }
            throw new AssertionError(e);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static void drop(String name, String by) throws Exception {
        within(
                by,
                () -> {
                    BUFFERS.remove(name);
                    for (Object arena : of(ARENAS, name)) {
                        ((AutoCloseable) arena).close();
                    }
                    ARENAS.remove(name);
                    of(ADDRESSES, name).forEach(NativeBlocks::free);
                    ADDRESSES.remove(name);
                    return null;
                });
    }

    /** A block by Unsafe, and how large it is. */
    private record Block(long address, long bytes) {}

    private static void storm(String name, int threads, int turns) throws Exception {
        Deque<Block> passed = new ArrayDeque<>();
        List<Block> left = new ArrayList<>();
        List<Thread> running = new ArrayList<>();
        for (int number = 0; number < threads; number++) {
            SplittableRandom random = new SplittableRandom(number);
            Thread thread =
                    new Thread(
                            () -> {
                                List<Block> kept = churn(random, turns, passed);
                                synchronized (left) {
                                    left.addAll(kept);
                                }
                            });
            thread.setContextClassLoader(DEPLOYED.get(name));
            thread.start();
            running.add(thread);
        }
        for (Thread thread : running) {
            thread.join();
        }
        left.addAll(passed);
        left.forEach(block -> of(ADDRESSES, name).add(block.address()));
        Protocol.say("left " + left.stream().mapToLong(Block::bytes).sum());
    }

    /** Takes and frees blocks; every tenth is passed to whoever frees it. Returns those that it has kept. */
    private static List<Block> churn(SplittableRandom random, int turns, Deque<Block> passed) {
        List<Block> kept = new ArrayList<>();
        for (int turn = 0; turn < turns; turn++) {
            long bytes = 8 * random.nextInt(1, 600);
            kept.add(new Block(allocate(bytes), bytes));
            if (turn % 10 == 0) {
                Block own = kept.remove(random.nextInt(kept.size()));
                Block others;
                synchronized (passed) {
                    passed.addLast(own);
                    others = passed.pollFirst();
                }
                free(others.address());
            } else if (turn % 4 != 0) {
                free(kept.remove(random.nextInt(kept.size())).address());
            }
        }
        return kept;
    }

    private static void turns(String name, String other, int count) {
        Thread current = Thread.currentThread();
        ClassLoader before = current.getContextClassLoader();
        List<Long> blocks = of(ADDRESSES, name);
        for (int i = 0; i < count; i++) {
            current.setContextClassLoader(DEPLOYED.get(i % 2 == 0 ? name : other));
            blocks.add(allocate(104));
        }
        current.setContextClassLoader(before);
    }

    private static BufferPoolMXBean pool() {
        return ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
                .filter(pool -> pool.getName().equals("direct"))
                .findFirst()
                .orElseThrow();
    }
}
