package dev.heapwarden.demo.holdings;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.openjdk.jol.info.ClassLayout;
import org.openjdk.jol.info.GraphLayout;

/** Sizes computed by rule are the sizes that the JVM's own layout has. */
class ObjectSizesTest {
    private static final ObjectSizes SIZES = ObjectSizes.HERE;

    static final class Empty {}

    static final class OneInt {
        int a;
    }

    static final class OneLong {
        long a;
    }

    static final class OneReference {
        Object a;
    }

    static final class LongAndInt {
        long a;
        int b;
    }

    static final class LongAndByte {
        long a;
        byte b;
    }

    static final class Mixed {
        Object a;
        Object b;
        Object c;
        long d;
        int e;
        byte f;
    }

    static Stream<Object[]> instances() {
        return Stream.of(
                new Object[] {new Empty(), SIZES.instance(0, 0, 0, 0)},
                new Object[] {new OneInt(), SIZES.instance(0, 0, 1, 0)},
                new Object[] {new OneLong(), SIZES.instance(0, 1, 0, 0)},
                new Object[] {new OneReference(), SIZES.instance(1, 0, 0, 0)},
                new Object[] {new LongAndInt(), SIZES.instance(0, 1, 1, 0)},
                new Object[] {new LongAndByte(), SIZES.instance(0, 1, 0, 1)},
                new Object[] {new Mixed(), SIZES.instance(3, 1, 1, 1)},
                new Object[] {new Payloads(1), Payloads.ownBytes()});
    }

    @ParameterizedTest
    @MethodSource("instances")
    void instances_have_the_size_of_their_layout(Object instance, long computedBytes) {
        assertEquals(ClassLayout.parseInstance(instance).instanceSize(), computedBytes);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 1000, 65_521})
    void arrays_have_the_size_of_their_layout(int length) {
        assertEquals(measured(new byte[length]), SIZES.array(Byte.BYTES, length));
        assertEquals(measured(new char[length]), SIZES.array(Character.BYTES, length));
        assertEquals(measured(new int[length]), SIZES.array(Integer.BYTES, length));
        assertEquals(measured(new long[length]), SIZES.array(Long.BYTES, length));
        assertEquals(measured(new Object[length]), SIZES.referenceArray(length));
    }

    @ParameterizedTest
    @ValueSource(strings = {"a", "abcdefgh", "abcdefghi", "über", "naïve", "Ω", "Ω and π", "✓✓✓✓✓"})
    void strings_have_the_size_of_their_graph(String text) {
        String unshared = new StringBuilder(text).toString();
        assertEquals(GraphLayout.parseInstance(unshared).totalSize(), SIZES.string(unshared));
    }

    @Test
    void payloads_have_the_size_of_their_layout_and_span_the_sampling_interval() {
        Payloads payloads = new Payloads(7);
        long smallest = Long.MAX_VALUE;
        long largest = 0;
        for (int i = 0; i < 2_000; i++) {
            Object payload = payloads.next();
            long bytes = Payloads.bytes(payload);
            assertEquals(measured(payload), bytes);
            smallest = Math.min(smallest, bytes);
            largest = Math.max(largest, bytes);
        }
        assertEquals(true, smallest < 64, "smallest: " + smallest);
        assertEquals(true, largest > 100 << 10, "largest: " + largest);
    }

    private static long measured(Object instance) {
        return ClassLayout.parseInstance(instance).instanceSize();
    }
}
