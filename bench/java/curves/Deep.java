package curves;

/** Allocates at the end of a chain of calls. */
final class Deep implements Work {
    private final Chain chain;
    private final int length;
    private final int steps;

    /** Arrays of that length at that depth, each after so many steps of arithmetic. */
    Deep(int depth, int length, int steps) throws ReflectiveOperationException {
        this.chain = Chain.deep(depth);
        this.length = length;
        this.steps = steps;
    }

    @Override
    public long run(long operations) {
        Sink sink = new Sink();
        long state = 1;
        for (long i = 0; i < operations; i++) {
            state = Churn.compute(state, steps);
            sink.last = chain.run(length);
        }
        return state;
    }

    @Override
    public int arrayLength() {
        return length;
    }
}
