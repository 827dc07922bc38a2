package victim;

import java.util.Map;

/**
 * Makes garbage in class initialisers.
 *
 * <pre>
 * churn NUMBER MIB    the initialiser of the class with that number, 0 to 3, makes so much garbage; says
 *                     "churned"
 * </pre>
 */
public final class Initialisers {
    private static final int LENGTH = 10_000;
    private static long bytesToMake;
    private static volatile Object last;

    private Initialisers() {}

    static final class First {
        static {
            churn();
        }

        private First() {}
    }

    static final class Second {
        static {
            churn();
        }

        private Second() {}
    }

    static final class Third {
        static {
            churn();
        }

        private Third() {}
    }

    static final class Fourth {
        static {
            churn();
        }

        private Fourth() {}
    }

    private static final String[] NAMES = {"First", "Second", "Third", "Fourth"};

    public static void main(String[] args) throws Exception {
        Protocol.serve(Map.of("churn", Initialisers::initialise));
    }

    private static void initialise(String[] words) throws ClassNotFoundException {
        bytesToMake = Long.parseLong(words[2]) << 20;
        Class.forName("victim.Initialisers$" + NAMES[Integer.parseInt(words[1])]);
        Protocol.say("churned");
    }

    private static void churn() {
        for (long made = 0; made < bytesToMake; made += LENGTH) {
            last = new byte[LENGTH];
        }
    }
}
