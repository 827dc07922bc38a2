package victim.contexts;

/**
 * Methods of which it is known how many instructions they run, as every compiler of Java has compiled them. The
 * numbers stand behind each.
 */
public final class Loops {
    private static volatile int sink;

    private Loops() {}

    /** 28: 18 to the end of the block in which {@code divided} throws, three to handle that, seven behind it. */
    public static void run(int n) {
        sink = sum(n);
        sink = caught(n);
        deep(3);
        sink = new Item(n).get();
        try {
            sink = divided(0);
        } catch (ArithmeticException expected) {
            sink = 0;
        }
        sink = chosen(1) + chosen(7);
    }

    /** 9 n + 9: four before the loop, three at each test, six in each round, two at the end. */
    private static int sum(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i;
        }
        return sum;
    }

    /** 6: three until the exception, one of which it leaves out; three to handle it. */
    private static int caught(int n) {
        try {
            return thrown(n);
        } catch (Stop stopped) {
            return 1;
        }
    }

    /** 4 n + 8: two before the loop, two at each test, two in each round, four to throw. */
    private static int thrown(int n) {
        int left = n;
        while (true) {
            if (left == 0) {
                throw new Stop();
            }
            left--;
        }
    }

    /** 7, and 3 where it calls itself no more. */
    private static void deep(int n) {
        if (n > 0) {
            deep(n - 1);
        }
    }

    /** It has no context, as those below. */
    private static int divided(int by) {
        return 10 / by + 1;
    }

    private static int chosen(int which) {
        int chosen = which;
        switch (which) {
            case 1:
                chosen++;
                break;
            default:
        }
        return chosen;
    }

    private static final class Item {
        private final int value;

        Item(int value) {
            this.value = value;
        }

        int get() {
            return value;
        }
    }

    /** Its constructor runs 7. */
    private static final class Stop extends RuntimeException {
        private static final long serialVersionUID = 1;

        Stop() {
            super(null, null, false, false);
        }
    }
}
