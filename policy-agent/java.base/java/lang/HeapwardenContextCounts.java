package java.lang;

/** The pages of contexts of one thread, in a list of all of them. */
final class HeapwardenContextCounts {
    final long[][] pages;
    final Thread owner;
    HeapwardenContextCounts next;

    HeapwardenContextCounts(long[][] pages, Thread owner) {
        this.pages = pages;
        this.owner = owner;
    }
}
