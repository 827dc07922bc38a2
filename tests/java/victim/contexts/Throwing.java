package victim.contexts;

/** Exceptions through several frames. */
public final class Throwing {
    private static volatile Object sink;

    private Throwing() {}

    /** Catches at the depth where it allocates again. */
    public static void caughtWithin(int depth) {
        try {
            down(depth);
        } catch (IllegalStateException expected) {
            sink = new Paths.Once();
        } finally {
            sink = new short[2];
        }
        sink = new Paths.Once();
    }

    /** Catches nothing. */
    public static Object through(int depth) {
        return down(depth);
    }

    private static Object down(int depth) {
        sink = new char[depth];
        if (depth == 0) {
            throw new IllegalStateException("as it should be");
        }
        try {
            return down(depth - 1);
        } catch (UnsupportedOperationException never) {
            return never;
        }
    }

    /** Through a constructor, before or after its object is initialised; caught here. */
    public static Object inConstructor(boolean before) {
        try {
            return before ? new Before() : new After();
        } catch (IllegalStateException expected) {
            sink = new Paths.Once();
            throw expected;
        }
    }

    private static Object thrown() {
        sink = new double[1];
        throw new IllegalStateException("as it should be");
    }

    /** Throws while its arguments are made. */
    public static final class Before extends Base {
        public Before() {
            super(sink == null ? thrown() : again(thrown()));
        }

        private static Object again(Object given) {
            return given;
        }
    }

    /** Throws once its object is initialised. */
    public static final class After extends Base {
        public After() {
            super(null);
            sink = new float[1];
            thrown();
        }
    }

    /** The constructor above it throws; caught within the packages. */
    public static void beneath() {
        try {
            sink = new Beneath();
        } catch (IllegalStateException expected) {
            sink = new Paths.Once();
        }
    }

    static final class Beneath extends Failing {
        Beneath() {
            super();
            throw new AssertionError("not reached");
        }
    }

    static class Failing extends Base {
        Failing() {
            super(null);
            thrown();
        }
    }

    static class Base {
        private final Object given;

        Base(Object given) {
            this.given = given;
        }

        @Override
        public String toString() {
            return "given " + given;
        }
    }
}
