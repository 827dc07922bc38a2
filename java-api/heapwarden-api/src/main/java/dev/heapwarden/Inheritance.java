package dev.heapwarden;

/**
 * Whether threads made in a scope belong to it.
 *
 * @since 0.1
 */
public enum Inheritance {
    /** They do not: a thread that is made in the scope starts in none. What is usual. */
    NONE,

    /**
     * They do: a thread that is made while the scope is open, by the thread that entered it, starts
     * in it and passes it on in turn; also a worker that a pool makes meanwhile, which then keeps it
     * as long as it lives. Threads that are made without inheritable thread-locals do not.
     */
    CHILD_THREADS
}
