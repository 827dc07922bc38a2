package dev.heapwarden.demo.holdings;

import java.util.Locale;

/**
 * An application's own count of the memory that it holds at this moment.
 *
 * @param ownBytes heap bytes that the application's own code allocated and holds
 * @param libraryBytes heap bytes that the shared library allocated for it and that it holds
 * @param entries how many things it holds, for the reader
 */
public record Truth(long ownBytes, long libraryBytes, long entries) {
    /**
     * Everything it holds.
     *
     * @return heap bytes
     */
    public long heldBytes() {
        return ownBytes + libraryBytes;
    }

    /**
     * The answer of {@code /truth}.
     *
     * @return a JSON object on one line
     */
    public String toJson() {
        return String.format(
                Locale.ROOT,
                "{\"held_bytes\":%d,\"own_bytes\":%d,\"library_bytes\":%d,\"entries\":%d}",
                heldBytes(),
                ownBytes,
                libraryBytes,
                entries);
    }
}
