package victim.tenant;

/** Allocates where a refusal is safe: in its own code, with nothing between. */
public final class Probe {
    private Probe() {}

    public static Object allocate() {
        // Large enough to be a sample at the intervals of these tests, and within the limit.
        return new byte[10_000];
    }
}
