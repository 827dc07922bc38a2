package victim.profiled;

/** Allocations whose number is known, in a package that contexts are counted of. */
public final class Work {
    private static volatile Object sink;
    private static long made;

    private Work() {}

    /** Three objects a round by two paths. */
    public static void run(int rounds) {
        for (int round = 0; round < rounds; round++) {
            single();
            pair();
        }
    }

    /** One object. */
    public static void single() {
        sink = new Item();
    }

    private static void pair() {
        single();
        sink = new int[7];
    }

    /** As many objects, each of them counted by {@link #made} once it is there. */
    public static void count(int objects) {
        made = 0;
        for (int object = 0; object < objects; object++) {
            sink = new Item();
            made++;
        }
    }

    /** How many {@link #count} has made so far, but for the one that it is just making. */
    public static long made() {
        return made;
    }

    /** One more than so many arrays at once. */
    public static void many(int dimension) {
        sink = new int[dimension][1];
    }

    /** As many objects, between which the thread gives way. */
    public static void yielding(int objects) {
        for (int object = 0; object < objects; object++) {
            sink = new Item();
            Thread.yield();
        }
    }

    static final class Item {}
}
