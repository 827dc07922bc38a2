package java.lang;

/** What rewritten classes call. It is patched into java.base, so that every class can. */
public final class RewriteMark {
    /** How often something was marked. Several threads may lose counts. */
    public static long marks;
    /** How often a guard asked. */
    public static long asked;

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

    public static boolean leaves() {
        asked++;
        return false;
    }
}
