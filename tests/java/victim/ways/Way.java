package victim.ways;

/** A way of allocating. Each has a package of its own, for an account of its own. */
public interface Way {
    /**
     * Allocates for so many rounds.
     *
     * @return something of what was made, so that it is not for nothing
     */
    Object run(int rounds) throws Exception;
}
