package java.lang;

/** The methods that rewritten classes call. It is patched into java.base, so that every class can. */
public final class RewriteMark {
    /** How often something was marked. Several threads may lose counts. */
    public static long marks;
    /** How often a guard asked. */
    public static long asked;

    /** How often a bracket began, and was left without an exception. */
    public static long bracketed;
    public static long left;

    /** How often a handler began in a bracket. */
    public static long handled;

    private RewriteMark() {}

    public static void mark() {
        marks++;
    }

    public static void made(Object made) {
        if (made == null) {
            throw new AssertionError("an allocation gave null");
        }
        marks++;
    }

    /** A bracket begins: the result comes back in {@link #leave}. */
    public static int enter() {
        bracketed++;
        return 4711;
    }

    public static void leave(int entered) {
        if (entered != 4711) {
            throw new AssertionError("a bracket has lost its number");
        }
        left++;
    }

    public static void leave(int entered, int instructions) {
        leave(entered, (long) instructions);
    }

    public static void leave(int entered, long instructions) {
        if (instructions <= 0) {
            throw new AssertionError("a method has run " + instructions + " instructions");
        }
        leave(entered);
    }

    /** A handler begins in a method with a bracket. */
    public static void again(int entered, int number) {
        if (entered != 4711 || number != 1_000_000) {
            throw new AssertionError("a bracket has lost its number at a handler");
        }
        handled++;
    }

    public static boolean leaves() {
        asked++;
        return false;
    }
}
