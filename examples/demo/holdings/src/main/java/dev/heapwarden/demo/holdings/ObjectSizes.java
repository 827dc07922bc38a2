package dev.heapwarden.demo.holdings;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;

/**
 * How many heap bytes HotSpot gives to an object, from the layout that this JVM uses.
 *
 * <p>Follows HotSpot's rules since JDK 15: a header, then the widest fields first, a gap after the
 * header filled by a narrower field where there is one, and the end rounded up to the object
 * alignment. Good for classes whose fields are all declared in one class. The tests compare it
 * with what OpenJDK's layout tool measures. Immutable; usable from every thread.
 */
public final class ObjectSizes {
    /** Sizes in the JVM that runs this code. */
    public static final ObjectSizes HERE = ofThisJvm();

    private final int headerBytes;
    private final int referenceBytes;
    private final int alignmentBytes;

    private ObjectSizes(int headerBytes, int referenceBytes, int alignmentBytes) {
        this.headerBytes = headerBytes;
        this.referenceBytes = referenceBytes;
        this.alignmentBytes = alignmentBytes;
    }

    private static ObjectSizes ofThisJvm() {
        HotSpotDiagnosticMXBean hotspot =
                ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        // Without compressed class pointers the start of array elements depends on the JDK's
        // version, and no supported configuration of the demo asks for it.
        if (!option(hotspot, "UseCompressedClassPointers", "true").equals("true")) {
            throw new IllegalStateException(
                    "this JVM runs with -XX:-UseCompressedClassPointers, whose object layout the demo"
                            + " does not know; start it without that option");
        }
        boolean compactHeaders = option(hotspot, "UseCompactObjectHeaders", "false").equals("true");
        boolean compressedReferences = option(hotspot, "UseCompressedOops", "true").equals("true");
        return new ObjectSizes(
                compactHeaders ? 8 : 12,
                compressedReferences ? 4 : 8,
                Integer.parseInt(option(hotspot, "ObjectAlignmentInBytes", "8")));
    }

    private static String option(HotSpotDiagnosticMXBean hotspot, String name, String otherwise) {
        try {
            return hotspot.getVMOption(name).getValue();
        } catch (IllegalArgumentException notInThisVersion) {
            return otherwise;
        }
    }

    /**
     * An array of primitives.
     *
     * @param elementBytes size of one element: 1, 2, 4 or 8
     * @param length number of elements
     * @return its bytes on the heap
     */
    public long array(int elementBytes, int length) {
        // The length (4 bytes) follows the header; elements start at a multiple of their own size.
        long base = roundUp(headerBytes + 4L, Math.max(elementBytes, 4));
        return roundUp(base + (long) elementBytes * length, alignmentBytes);
    }

    /**
     * An array of references, without what they refer to.
     *
     * @param length number of elements
     * @return its bytes on the heap
     */
    public long referenceArray(int length) {
        return array(referenceBytes, length);
    }

    /**
     * An instance of a class that declares all its fields itself, without what they refer to.
     *
     * @param references number of reference fields
     * @param longs number of eight-byte fields
     * @param ints number of four-byte fields
     * @param bytes number of one-byte fields
     * @return its bytes on the heap
     */
    public long instance(int references, int longs, int ints, int bytes) {
        long wide = 8L * longs + (referenceBytes == 8 ? 8L * references : 0);
        long narrow = 4L * ints + (referenceBytes == 4 ? 4L * references : 0);
        long start = headerBytes;
        if (wide > 0) {
            // Narrow fields fill the gap up to the first wide field, as far as they go.
            long gap = roundUp(start, 8) - start;
            long narrowInGap = Math.min(narrow, gap);
            long bytesInGap = Math.min(bytes, gap - narrowInGap);
            long rest = narrow - narrowInGap + bytes - bytesInGap;
            return roundUp(roundUp(start, 8) + wide + rest, alignmentBytes);
        }
        return roundUp(start + narrow + bytes, alignmentBytes);
    }

    /**
     * A string with the array of its characters, taken as not shared with another string.
     *
     * @param string the string; the empty one counts nothing, since the JVM shares it
     * @return its bytes on the heap
     */
    public long string(String string) {
        if (string.isEmpty()) {
            return 0;
        }
        int widthBytes = 1;
        for (int i = 0; i < string.length(); i++) {
            if (string.charAt(i) > 0xff) {
                widthBytes = 2;
                break;
            }
        }
        // java.lang.String since 13: value, hash, coder, hashIsZero.
        return instance(1, 0, 1, 2) + array(1, widthBytes * string.length());
    }

    private static long roundUp(long bytes, long multiple) {
        return (bytes + multiple - 1) / multiple * multiple;
    }
}
