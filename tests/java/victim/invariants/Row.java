package victim.invariants;

/** One row of the table: what the tenant's code does, and what must hold afterwards. */
public interface Row {
    /** Once, while nothing is refused yet. */
    default void prepare(int trials) throws Exception {}

    /** While refusals rain: what the tenant's code throws at its caller comes out as it is. */
    void during(int trial) throws Throwable;

    /** Once the rain has stopped: what is broken, or null. */
    String after(int trial) throws Throwable;
}
