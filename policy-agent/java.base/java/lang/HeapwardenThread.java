package java.lang;

/**
 * What exact accounts know of one thread: whom it allocates for, and where it counts. It stands in the
 * place of the object that the thread locks when it is interrupted, because that is the one field of
 * every thread whose value nobody looks into. It is a lock as good as the other.
 *
 * <p>Written by its thread, but for {@link #account} and {@link #isFixed}, which others may reset: then
 * the thread asks again.
 */
final class HeapwardenThread {
    /** Nobody knows yet whom the thread allocates for. */
    static final int UNKNOWN = -1;

    /** Twice the number of the purse; {@link #UNKNOWN} asks the agent. */
    int account = UNKNOWN;

    /** A scope or the context class loader decides: code of package accounts does not change it. */
    boolean isFixed;

    /**
     * Bytes and objects in turn, by purse; null before the first. A virtual thread has those of its
     * carrier, so no array has two writers.
     */
    long[] counts;

    /** Where the thread is in the tree of contexts; see {@link HeapwardenContexts}. */
    int context;

    /**
     * The pages that its contexts are counted in: its own, or those of its carrier; null before the first, and
     * while somebody has to be called.
     */
    long[][] contexts;

    /** The pages in which nobody else counts; null if it has none. Of a virtual thread: once it has a profile. */
    long[][] ownContexts;

    /** What its program reads of its contexts; null if it does not. */
    HeapwardenProfile profile;

    HeapwardenThread() {}
}
