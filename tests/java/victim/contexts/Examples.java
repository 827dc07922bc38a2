package victim.contexts;

/** The examples of "Portable Profiling of Memory Allocation in Java", figures 1 and 3. */
public final class Examples {
    private static Object sink;

    private Examples() {}

    /** Runs each once. */
    public static void run() {
        objects235();
        objects230();
        objects205();
        objects035();
        ints235();
        ints230();
        ints205();
        ints035();
        partial();
        booleans();
        constructors();
    }

    private static void objects235() {
        sink = new Object[2][3][5];
    }

    private static void objects230() {
        sink = new Object[2][3][0];
    }

    private static void objects205() {
        sink = new Object[2][0][5];
    }

    private static void objects035() {
        sink = new Object[0][3][5];
    }

    private static void ints235() {
        sink = new int[2][3][5];
    }

    private static void ints230() {
        sink = new int[2][3][0];
    }

    private static void ints205() {
        sink = new int[2][0][5];
    }

    private static void ints035() {
        sink = new int[0][3][5];
    }

    /** Two of three dimensions. */
    private static void partial() {
        sink = new int[4][5][];
    }

    private static void booleans() {
        sink = new boolean[3][7];
    }

    private static void constructors() {
        sink = new A();
    }

    /** Figure 1: the first constructor allocates what it gives to the second. */
    static final class A {
        private final Object given;

        A() {
            this(new Object());
        }

        A(Object given) {
            super();
            this.given = given;
            sink = this.given;
        }
    }
}
