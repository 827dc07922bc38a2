package dev.heapwarden;

import dev.heapwarden.internal.Link;

/**
 * An open scope: what its thread allocates is charged to the name that it was entered with. Made by
 * {@link Heapwarden#enter(String)}, for {@code try} with resources.
 *
 * <p><b>Threads.</b> A scope belongs to the thread that entered it.
 *
 * <p><b>Cost.</b> It is never stored, so that the compiler need not make the object at all. Before JDK
 * 22 it makes it where the body of the {@code try} is not inlined: for its sake the handler that closes
 * the scope is compiled as a call, also if nothing was ever thrown (JDK-8267532).
 *
 * <p><b>Without the agent</b> it does nothing.
 *
 * @since 0.1
 */
public final class Scope implements AutoCloseable {
    /** 0 for a scope that does nothing. */
    private final long token;

    Scope(long token) {
        this.token = token;
    }

    /**
     * Leaves the scope. What is charged to it stays so until it is freed.
     *
     * <p>A scope that is closed before one that was entered after it is closed all the same; the
     * innermost open one pays. Closing twice, and closing on another thread, does nothing. Each of
     * the three is counted by the agent, and logged as a warning now and then.
     */
    @Override
    public void close() {
        Link.close(token);
    }
}
