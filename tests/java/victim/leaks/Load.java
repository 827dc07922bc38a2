package victim.leaks;

/** The allocations of one service, and the objects it keeps; driven by {@link Services} alone. */
public interface Load {
    /**
     * Does the work of the time since the last call.
     *
     * @param now seconds since the start
     * @param seconds since the last call
     */
    void tick(double now, double seconds);
}
