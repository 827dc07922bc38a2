package rows;

/**
 * One workload: a fixed, deterministic amount of work on a library, which is verified.
 *
 * <p>What the constructor builds and what the row keeps in its fields is its live data.
 */
public interface Row {
    /** Iterations that are not timed, after which most code is compiled and caches are warm. */
    default int warmups() {
        return 3;
    }

    /** Timed iterations, if the user asks for no other number: 5 s or more in all. */
    default int iterations() {
        return 6;
    }

    /** Units of work in one iteration: orders, documents, queries. */
    long operations();

    /** Returns the checksum that every iteration must return, on every JDK. */
    long expected();

    /**
     * Does the work of one iteration, 0.3 to 1.5 s, and returns the checksum of its result.
     *
     * @throws Exception when the library fails, or when the result contradicts itself
     */
    long iterate() throws Exception;
}
