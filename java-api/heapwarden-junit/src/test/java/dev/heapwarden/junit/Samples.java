package dev.heapwarden.junit;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.internal.Link;
import java.util.ArrayList;
import java.util.List;
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
}
