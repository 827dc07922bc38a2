package doorless;

/** A server as its client sees it. */
public interface Target {
    /** Bytes that one unit of load makes the server hold. */
    int UNIT_BYTES = 32_768;

    /** Has the server hold one unit; returns once that is acknowledged. */
    void load(int number) throws Exception;

    /** Has the server let go of one unit: of this one, or of any where units have no names. */
    void delete(int number) throws Exception;

    /** Has the server let go of everything. */
    void drop() throws Exception;

    /** Units that the server holds and that are whole. */
    long count() throws Exception;

    /** A request that keeps nothing. */
    default void read() throws Exception {
        count();
    }
}
