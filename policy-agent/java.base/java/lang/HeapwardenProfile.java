package java.lang;

/** What a program reads of the contexts of one of its threads. Used by that thread alone. */
final class HeapwardenProfile {
    final Thread owner;

    /** The thread's pages as they were when the profile began. */
    final long[][] before;

    /** After how many objects {@link #callback} is called again; 0: never. */
    long every;

    /** How many of them are left. */
    long left;

    Runnable callback;

    /** What the callback threw: it is not called any more. */
    Throwable failure;

    HeapwardenProfile(Thread owner, long[][] before) {
        this.owner = owner;
        this.before = before;
    }
}
