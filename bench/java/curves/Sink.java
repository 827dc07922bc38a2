package curves;

/**
 * Where the last object goes, so that the compiler cannot leave an allocation out. Each run has one of
 * its own: threads that write one field would wait for each other, and G1 remembers references that
 * old objects hold.
 */
final class Sink {
    private static volatile Sink latest;

    Object last;

    /** A new one, which is known elsewhere. */
    Sink() {
        latest = this;
    }
}
