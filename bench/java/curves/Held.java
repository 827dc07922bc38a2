package curves;

/** The work of {@link Churn} beside many small objects that stay alive. */
final class Held implements Work {
    private static final int LENGTH = 32;

    private final byte[][] held;
    private final Churn churn;

    /** So many objects, then arrays of that length after so many steps. */
    Held(int objects, int length, int steps) {
        held = new byte[objects][];
        for (int i = 0; i < objects; i++) {
            held[i] = new byte[LENGTH];
        }
        churn = new Churn(length, steps);
        // They move to the old generation before any clock runs.
        System.gc();
    }

    @Override
    public long run(long operations) {
        long checksum = churn.run(operations);
        for (byte[] one : held) {
            checksum += one.length;
        }
        return checksum;
    }

    @Override
    public int arrayLength() {
        return churn.arrayLength();
    }
}
