package java.lang;

/**
 * Known to exact accounts of one thread: whom it allocates for, and where it counts. It stands in the
 * place of the object that the thread locks when it is interrupted, because that is the one field of
 * every thread whose value nobody looks into. It is a lock as good as the other.
 *
 * <p><b>Why the lock may change.</b> The constructor of a thread puts this there before anybody has the
 * thread. A thread from before the counters puts it there itself, at an allocation. So another thread may
 * hold the old lock meanwhile, in {@code interrupt()}: it looks whether the thread waits for input
 * ({@code nioBlocker}), and wakes it. What the two locks let happen beyond one lock:
 *
 * <ul>
 *   <li>The thread begins to wait after the other looked and before it let go of the lock. In JDK 25 the
 *       other has set the mark of the interrupt before it looked, and the thread looks at the mark
 *       after it has said that it waits: one of both sees the other, because each takes a lock between its write
 *       and its read, which orders them. In JDK 17 the other sets the mark after it let go of the lock, so
 *       the thread may begin to wait between the two with one lock as well: the JDK's own gap, longer by a
 *       few instructions, once for each thread that was there when counters were put in.
 *   <li>The thread ends its wait while the other still wakes it. The other has closed the channel or woken the
 *       selector by then, which is what ended the wait; the rest of its work does not look at the thread.
 *   <li>A virtual thread leaves its carrier while the other marks the carrier as interrupted. The mark wakes a
 *       carrier that is parked once in vain, and the next mount clears it.
 * </ul>
 *
 * <p>The thread never holds its own lock at an allocation: what the JDK does under it allocates nothing on
 * that thread.
 *
 * <p>Written by its thread, but for {@link #account} and {@link #free}, which others may reset: then the
 * thread asks again. An account is of one moment: see {@code HeapwardenCounter}.
 */
final class HeapwardenThread {
    /** Of no moment. */
    static final int UNKNOWN = -1;

    /** Twice the number of the purse, mixed with the moment; of another moment, it has to be asked for. */
    int account = UNKNOWN;

    /**
     * The moment in which code of accounts decides whom the thread allocates for. In any other a scope or the
     * context class loader decides, or the thread has to ask.
     */
    int free = UNKNOWN;

    /** A {@link HeapwardenTable}. A virtual thread has that of its carrier, so no table has two writers. */
    long[] counts = HeapwardenTable.NONE;

    /** Where the thread is in the tree of contexts; see {@link HeapwardenContexts}. */
    int context;

    /**
     * The pages that its contexts are counted in: its own, or those of its carrier; null before the first, and
     * while somebody has to be called.
     */
    long[][] contexts;

    /** The pages in which nobody else counts; null if it has none. Of a virtual thread: once it has a profile. */
    long[][] ownContexts;

    /** The profile by which its program reads its contexts; null if it reads none. */
    HeapwardenProfile profile;

    HeapwardenThread() {}
}
