package micro;

/** The clock around the agent's callback; natives of {@code stopwatch.c}. One thread uses it. */
final class Stopwatch {
    private Stopwatch() {}

    /** Forgets what was timed, and times the calling thread's samples from now on. */
    static native void start();

    /** Samples timed since the start. */
    static native long samples();

    /** The duration that this share of the samples stayed within, in nanoseconds. */
    static native long quantileNs(double share);

    /** Prints what was timed as one line for the bench. */
    static void report(String phase, int depth) {
        System.out.println("timed " + phase + " " + depth + " " + samples() + " "
                + quantileNs(0.5) + " " + quantileNs(0.99));
    }
}
