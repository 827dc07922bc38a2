package victim;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import victim.ways.Way;
import victim.ways.outer.Outer;

/**
 * Ways of allocating, each in a package of its own, and what they allocate by the JVM's own count of the
 * thread.
 *
 * <pre>
 * warm ROUNDS          runs each way
 * run ROUNDS           runs each way: truth ACCOUNT BYTES
 * borders ROUNDS       packages that call each other: truth outer BYTES, truth inner BYTES
 * virtual N ROUNDS     on N virtual threads, or platform threads: truth virtual BYTES OBJECTS
 * park N ROUNDS        begins N virtual threads, or platform threads, that wait in the package's code
 * release              has them make arrays: truth virtual BYTES OBJECTS
 * all                  the JVM's own count of all living threads: truth all BYTES
 * </pre>
 */
public final class ExactWays {
    private static final ThreadMXBean THREADS =
            (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final long SELF = Thread.currentThread().getId();
    private static final List<Thread> PARKED = new ArrayList<>();
    private static CountDownLatch begin;
    private static int parkedRounds;
    private static Object sink;

    private ExactWays() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Way> ways = new LinkedHashMap<>();
        ways.put("news", new victim.ways.news.News());
        ways.put("arrays", new victim.ways.arrays.Arrays());
        ways.put("copies", new victim.ways.copies.Copies());
        ways.put("reflective", new victim.ways.reflective.Reflective());
        ways.put("strings", new victim.ways.strings.Strings());
        ways.put("collections", new victim.ways.collections.Collections());
        Outer outer = new Outer();
        Way virtual = new victim.ways.virtual.Virtual();
        Protocol.serve(
                Map.of(
                        "warm", words -> run(ways, Integer.parseInt(words[1]), false),
                        "run", words -> run(ways, Integer.parseInt(words[1]), true),
                        "borders", words -> borders(outer, Integer.parseInt(words[1])),
                        "virtual",
                                words ->
                                        virtual(
                                                virtual,
                                                Integer.parseInt(words[1]),
                                                Integer.parseInt(words[2])),
                        "park",
                                words ->
                                        park(Integer.parseInt(words[1]), Integer.parseInt(words[2])),
                        "release", words -> release(),
                        "all", words -> Protocol.say("truth all " + allThreads())));
    }

    private static void run(Map<String, Way> ways, int rounds, boolean tell) throws Exception {
        for (Map.Entry<String, Way> way : ways.entrySet()) {
            Way running = way.getValue();
            THREADS.getThreadAllocatedBytes(SELF);
            long before = THREADS.getThreadAllocatedBytes(SELF);
            sink = running.run(rounds);
            long bytes = THREADS.getThreadAllocatedBytes(SELF) - before;
            if (tell) {
                Protocol.say("truth " + way.getKey() + " " + bytes);
            }
        }
    }

    private static void borders(Outer outer, int rounds) {
        long ten = Layout.array(1, 10);
        long hundred = Layout.array(1, 100);
        long thousand = Layout.array(1, 1000);
        long compared = outer.run(rounds);
        Protocol.say("truth outer " + 4 * rounds * thousand);
        Protocol.say("truth inner " + (5 * rounds * hundred + compared * ten));
    }

    private static void virtual(Way way, int count, int rounds) throws Exception {
        ThreadFactory factory = factory();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            threads.add(
                    factory.newThread(
                            () -> {
                                try {
                                    way.run(rounds);
                                } catch (Exception failure) {
                                    throw new IllegalStateException(failure);
                                }
                            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        long objects = (long) count * rounds;
        Protocol.say("truth virtual " + objects * Layout.array(1, 1000) + " " + objects);
    }

    private static void park(int count, int rounds) throws Exception {
        ThreadFactory factory = factory();
        parkedRounds = rounds;
        begin = new CountDownLatch(1);
        CountDownLatch started = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            PARKED.add(
                    factory.newThread(
                            () -> {
                                started.countDown();
                                victim.ways.virtual.Virtual.afterwards(begin, rounds);
                            }));
        }
        PARKED.forEach(Thread::start);
        started.await();
    }

    private static void release() throws InterruptedException {
        begin.countDown();
        for (Thread thread : PARKED) {
            thread.join();
        }
        long objects = (long) PARKED.size() * parkedRounds;
        PARKED.clear();
        Protocol.say("truth virtual " + objects * Layout.array(1, 1000) + " " + objects);
    }

    /** Of virtual threads where the JDK has them. */
    static ThreadFactory factory() throws ReflectiveOperationException {
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            return (ThreadFactory) type.getMethod("factory").invoke(builder);
        } catch (NoSuchMethodException older) {
            return Thread::new;
        }
    }

    private static long allThreads() {
        long sum = 0;
        for (long bytes : THREADS.getThreadAllocatedBytes(THREADS.getAllThreadIds())) {
            sum += Math.max(0, bytes);
        }
        return sum;
    }

    /** The last object that a way has made. */
    public static Object last() {
        return sink;
    }
}
