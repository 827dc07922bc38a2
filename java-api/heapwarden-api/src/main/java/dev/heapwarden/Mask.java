package dev.heapwarden;

import dev.heapwarden.internal.Link;

/**
 * A section in which its thread is not refused memory. Made by {@link Heapwarden#mask()}, for {@code
 * try} with resources. Belongs to the thread that began it.
 *
 * @since 0.1
 */
public final class Mask implements AutoCloseable {
    /** 0 for a mask that does nothing. */
    private final long token;

    /** Written on the thread alone that began it. */
    private boolean closed;

    Mask(long token) {
        this.token = token;
    }

    /**
     * Ends the section. Closing twice, and closing on another thread, does nothing; the agent counts
     * both.
     */
    @Override
    public void close() {
        if (closed) {
            Link.unmaskedTwice();
        } else {
            closed = Link.unmask(token);
        }
    }
}
