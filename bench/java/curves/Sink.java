package curves;

/** Where the last object goes, so that the compiler cannot leave an allocation out. */
final class Sink {
    static Object last;

    private Sink() {}
}
