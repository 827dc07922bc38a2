package dev.heapwarden.demo.holdings;

/**
 * Makes arrays of mixed kinds and sizes, spread evenly over the orders of magnitude from 16 bytes
 * to 128 KiB: below, around and above the agent's sampling interval.
 *
 * <p>The sequence is the same in every run, the sampling is not: what an account shows beside the
 * truth is the error of the measurement alone. Not thread-safe.
 */
public final class Payloads {
    private static final int SMALLEST_BYTES = 16;
    private static final int DOUBLINGS = 13;

    private long state;

    /**
     * Starts a sequence.
     *
     * @param seed which sequence
     */
    public Payloads(long seed) {
        state = seed;
    }

    /**
     * Allocates the next array.
     *
     * @return a {@code byte[]}, {@code int[]} or {@code long[]}
     */
    public Object next() {
        long random = random();
        double doublings = (random >>> 11) * 0x1p-53 * DOUBLINGS;
        int bytes = (int) (SMALLEST_BYTES * Math.pow(2, doublings));
        return switch ((int) (random & 3)) {
            case 0 -> new int[bytes / Integer.BYTES];
            case 1 -> new long[bytes / Long.BYTES];
            default -> new byte[bytes];
        };
    }

    /**
     * The heap bytes of an array that {@link #next} made.
     *
     * @param payload the array
     * @return its bytes on the heap, header and padding included
     */
    public static long bytes(Object payload) {
        if (payload instanceof byte[] array) {
            return ObjectSizes.HERE.array(Byte.BYTES, array.length);
        }
        if (payload instanceof int[] array) {
            return ObjectSizes.HERE.array(Integer.BYTES, array.length);
        }
        if (payload instanceof long[] array) {
            return ObjectSizes.HERE.array(Long.BYTES, array.length);
        }
        throw new IllegalArgumentException("not a payload: " + payload.getClass());
    }

    /**
     * The heap bytes of this object itself.
     *
     * @return its bytes on the heap
     */
    public static long ownBytes() {
        return ObjectSizes.HERE.instance(0, 1, 0, 0);
    }

    // SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
    private long random() {
        state += 0x9e3779b97f4a7c15L;
        long z = state;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }
}
