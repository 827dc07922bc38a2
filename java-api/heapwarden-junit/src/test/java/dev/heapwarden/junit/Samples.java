package dev.heapwarden.junit;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.internal.Link;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Test classes that other tests run. */
final class Samples {
    static final int MIB = 1 << 20;

    private static final long BOUND_NANOS = 60_000_000_000L;

    private Samples() {}

    /** Each holds more than it may. */
    static final class Holding {
        private static final List<byte[]> HELD = new ArrayList<>();

        @Test
        @MaxLive("4MiB")
        void holds_eight() {
            HELD.add(new byte[8 * MIB]);
        }

        @Test
        @MaxLive("4MiB")
        void has_a_thread_hold_eight() throws InterruptedException {
            Thread thread = new Thread(() -> HELD.add(new byte[8 * MIB]));
            thread.start();
            thread.join();
        }

        @Test
        @MaxLive("4MiB")
        void holds_eight_while_it_runs() {
            byte[] held = new byte[8 * MIB];
            long begun = System.nanoTime();
            // Until a collection has seen it.
            while (Link.figures(Link.purse())[6] < held.length) {
                assertTrue(System.nanoTime() - begun < BOUND_NANOS, "not seen within a minute");
                System.gc();
            }
            held[0] = 1;
        }
    }

    /** Each allocates more than it may. */
    @MaxAllocated("4MiB")
    static final class Allocating {
        static volatile byte[] last;

        @RepeatedTest(2)
        void eight() {
            for (int part = 0; part < 8; part++) {
                last = new byte[MIB];
            }
            last = null;
        }

        @TestFactory
        Stream<DynamicTest> dynamic() {
            return Stream.of(DynamicTest.dynamicTest("eight, dynamically", this::eight));
        }

        @Nested
        final class Within {
            @Test
            void eight_in_a_nested_class() {
                eight();
            }
        }
    }

    /** Each keeps its limits. */
    @MaxLive("4MiB")
    @MaxAllocated("4MiB")
    static final class Modest {
        static byte[] held;

        @Test
        void one() {
            held = new byte[MIB];
        }

        /** The method's limit counts, not the class's. */
        @Test
        @MaxLive("16MiB")
        @MaxAllocated("16MiB")
        void eight_where_that_is_allowed() {
            held = new byte[8 * MIB];
        }
    }

    /** Fails by itself: that is what is told. */
    static final class Failing {
        @Test
        @MaxAllocated("1B")
        void fails() {
            throw new IllegalStateException("by itself");
        }
    }

    /** Wrong with the agent and without it. */
    static final class Misspelt {
        @Test
        @MaxLive("64MB")
        void never_runs() {}
    }

    /** Has no limit. */
    static final class Free {
        @Test
        void runs() {}
    }

    /** An object that a leak is made of. */
    static final class Session {
        final byte[] state = new byte[1000];
    }

    /** Each leaks a session in each run, one in every third. */
    @NoLeak
    static final class Leaking {
        private static final List<Session> HELD = new ArrayList<>();
        private static final Map<Integer, Session> BY_KEY = new HashMap<>();
        private static final List<Supplier<Session>> LISTENERS = new CopyOnWriteArrayList<>();
        private static final ExecutorService POOL = Executors.newSingleThreadExecutor(Leaking::daemon);
        private static final ThreadLocal<List<Session>> OF_THREAD =
                ThreadLocal.withInitial(ArrayList::new);
        private static int runs;
        private static int keys;

        private static Thread daemon(Runnable task) {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        }

        @Test
        void in_a_list() {
            HELD.add(new Session());
        }

        @Test
        void under_keys_that_never_come_again_amid_garbage() {
            int bytes = 0;
            for (int garbage = 0; garbage < 20; garbage++) {
                bytes += new byte[1000].length;
            }
            BY_KEY.put(keys + bytes, new Session());
            keys++;
        }

        @Test
        void as_a_listener_that_is_never_removed() {
            Session session = new Session();
            LISTENERS.add(() -> session);
        }

        @Test
        void in_a_thread_of_a_pool() throws Exception {
            POOL.submit(() -> OF_THREAD.get().add(new Session())).get();
        }

        @Test
        void in_every_third_run() {
            if (runs++ % 3 == 0) {
                HELD.add(new Session());
            }
        }

        @TestFactory
        Stream<DynamicTest> dynamic() {
            return Stream.of(DynamicTest.dynamicTest("in a dynamic test", this::in_a_list));
        }

        @RepeatedTest(1)
        void in_a_template() {
            in_a_list();
        }

        /** Growth that the test's own limit allows is no leak. */
        @Test
        @NoLeak(allow = "2KiB")
        void that_is_allowed() {
            in_a_list();
        }
    }

    /** Hold much, and do not leak. */
    @NoLeak
    static final class Caching {
        private static final Random RANDOM = new Random(7);
        private static final Session[] SLOTS = new Session[3];
        private static final Map<Integer, Session> LATEST =
                new LinkedHashMap<>() {
                    private static final long serialVersionUID = 1;

                    @Override
                    protected boolean removeEldestEntry(Map.Entry<Integer, Session> eldest) {
                        return size() > 4;
                    }
                };
        private static Session last;
        private static List<Session> once;
        private static byte[] changing;
        private static int keys;

        @Test
        void the_latest_only() {
            last = new Session();
        }

        @Test
        void the_latest_few() {
            LATEST.put(keys++, new Session());
        }

        @Test
        void some_at_random() {
            for (int more = 0; more < 5; more++) {
                SLOTS[RANDOM.nextInt(SLOTS.length)] = new Session();
            }
        }

        @Test
        void what_is_made_once() {
            if (once == null) {
                once = Stream.generate(Session::new).limit(100).collect(Collectors.toList());
            }
        }

        /** Rises and falls by chance: a rise in all parts of a series is not yet a leak. */
        @RepeatedTest(30)
        @NoLeak(runs = 4)
        void of_a_size_that_changes() {
            changing = new byte[RANDOM.nextInt(100_000)];
        }

        @Test
        void garbage_alone() {
            assertTrue(new Session().state.length > 0);
        }

        /** Its limit is about the first run, and it does not leak. */
        @Test
        @MaxLive("4KiB")
        void within_a_limit() {
            last = new Session();
        }
    }

    /** Fails in a later run: that is what is told, with the run. */
    static final class Unrepeatable {
        private static int runs;

        @Test
        @NoLeak
        void fails_in_the_third_run() {
            runs++;
            if (runs == 3) {
                throw new IllegalStateException("by itself");
            }
        }
    }

    /** Wrong with the agent and without it. */
    static final class Misconfigured {
        @Test
        @NoLeak(runs = 3)
        void never_runs() {}
    }
}
