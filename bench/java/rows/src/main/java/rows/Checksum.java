package rows;

import java.io.OutputStream;

/**
 * A 64-bit FNV-1a hash (Fowler, Noll and Vo; draft-eastlake-fnv), of bytes, numbers and text. As a
 * stream, it takes what a library writes.
 */
public final class Checksum extends OutputStream {
    private static final long OFFSET_BASIS = 0xcbf29ce484222325L;
    private static final long PRIME = 0x100000001b3L;

    private long value = OFFSET_BASIS;

    @Override
    public void write(int octet) {
        value = (value ^ (octet & 0xff)) * PRIME;
    }

    @Override
    public void write(byte[] octets, int from, int length) {
        long hash = value;
        for (int i = from; i < from + length; i++) {
            hash = (hash ^ (octets[i] & 0xff)) * PRIME;
        }
        value = hash;
    }

    /** Takes a number in one step. */
    public void add(long number) {
        value = (value ^ number) * PRIME;
    }

    /** Takes a text, a character a step, and its length, so that texts in a row do not run together. */
    public void add(CharSequence text) {
        long hash = value;
        for (int i = 0; i < text.length(); i++) {
            hash = (hash ^ text.charAt(i)) * PRIME;
        }
        value = hash;
        add(text.length());
    }

    /** The hash of all that was taken so far. */
    public long value() {
        return value;
    }
}
