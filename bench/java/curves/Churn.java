package curves;

/** Computes a little and allocates an array, again and again; keeps none. */
final class Churn implements Work {
    private final int length;
    private final int steps;

    /** Arrays of that length, each after so many steps of arithmetic. */
    Churn(int length, int steps) {
        this.length = length;
        this.steps = steps;
    }

    @Override
    public long run(long operations) {
        Sink sink = new Sink();
        long state = 1;
        for (long i = 0; i < operations; i++) {
            state = compute(state, steps);
            byte[] array = new byte[length];
            array[(int) (state >>> 33) % length] = 1;
            sink.last = array;
        }
        return state;
    }

    @Override
    public int arrayLength() {
        return length;
    }

    /** Xorshift, each of whose steps waits for the one before: a nanosecond or two each. */
    static long compute(long state, int steps) {
        for (int i = 0; i < steps; i++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
        }
        return state;
    }
}
