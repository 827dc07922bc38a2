package dev.heapwarden.examples.servlet;

/**
 * Recognises the errors of a refusal without depending on them: the agent defines their classes in
 * the boot loader, and where there is no agent there is no class to be linked to.
 *
 * <p>Nothing is looked up before the first throwable that the boot loader's package {@code
 * dev.heapwarden} has made, so that an agent attached later is noticed too; from then on it is one
 * type check for each throwable, which allocates nothing.
 */
final class Refusals {
    private static final String PACKAGE = "dev.heapwarden.";
    private static final String INTERFACE = "dev.heapwarden.MemoryQuotaExceeded";

    /** A chain longer than this, or one that bites its own tail, is given up. */
    private static final int MOST_CAUSES = 64;

    private static volatile Class<?> refusal;

    private Refusals() {}

    /** Whether a refusal is this throwable or one of its causes. */
    static boolean caused(Throwable thrown) {
        Throwable current = thrown;
        for (int i = 0; current != null && i < MOST_CAUSES; i++) {
            if (isOne(current)) {
                return true;
            }
            current = current.getCause();
        }
        return false;
    }

    private static boolean isOne(Throwable thrown) {
        Class<?> known = refusal;
        if (known == null) {
            Class<?> type = thrown.getClass();
            if (type.getClassLoader() != null || !type.getName().startsWith(PACKAGE)) {
                return false;
            }
            known = find();
            refusal = known;
        }
        return known != null && known.isInstance(thrown);
    }

    private static Class<?> find() {
        try {
            return Class.forName(INTERFACE, false, null);
        } catch (ClassNotFoundException e) {
            return null;
        }
    }
}
