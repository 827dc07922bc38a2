package dev.heapwarden.examples.tenants;

import java.util.ArrayDeque;
import java.util.Deque;

/** The pieces that one tenant keeps, their size known to the byte. Thread-safe. */
final class Store {
    /** Bytes of one piece's contents. */
    static final int PIECE_LENGTH = 4 * 1024;

    /** Bytes that a piece takes in the heap: an array's header and its contents. */
    static final long PIECE_BYTES = 16 + PIECE_LENGTH;

    private final Deque<byte[]> pieces = new ArrayDeque<>();

    /** Makes a piece, on the account of whoever calls, and keeps it. */
    void add() {
        byte[] piece = new byte[PIECE_LENGTH];
        synchronized (this) {
            pieces.add(piece);
        }
    }

    /** Lets the oldest go until this many are left. */
    synchronized void trim(int most) {
        while (pieces.size() > most) {
            pieces.remove();
        }
    }

    /** How many pieces are kept. */
    synchronized int count() {
        return pieces.size();
    }

    /** Bytes of the pieces kept. */
    long bytes() {
        return count() * PIECE_BYTES;
    }
}
