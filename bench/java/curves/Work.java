package curves;

/** Work that can be done in any amount, and the same way each time. */
interface Work {
    /** Does so many operations; a checksum of what they did. */
    long run(long operations) throws InterruptedException;

    /** Length of the byte array that each operation allocates. */
    int arrayLength();
}
