package victim.stress;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.TimeoutException;

/** Judges errors: whether one is a refusal, and whether it shows damage. */
final class Failure {
    private Failure() {}

    /** A refusal is among its causes, or among what they suppress. */
    static boolean isRefusal(Throwable e) {
        return find(e, Failure::isRefusalItself, Collections.newSetFromMap(new IdentityHashMap<>()))
                != null;
    }

    /**
     * Returns the sign of damage: a class that is broken for good, somebody who waits in vain, or frames that
     * the VM has dropped without their finally blocks, because an allocation failed while it undid an
     * optimisation; else null.
     */
    static String damage(Throwable e) {
        Throwable found =
                find(
                        e,
                        cause ->
                                cause instanceof LinkageError
                                        || cause instanceof TimeoutException
                                        || isDroppedFrames(cause),
                        Collections.newSetFromMap(new IdentityHashMap<>()));
        return found == null ? null : found.toString();
    }

    /** Its innermost cause's class and message, shortened. */
    static String kind(Throwable e) {
        Throwable cause = e;
        while (cause.getCause() != null && cause.getCause() != cause) {
            cause = cause.getCause();
        }
        String text = cause.toString().replaceAll("[0-9]+", "0").replace('\n', ' ');
        return text.substring(0, Math.min(text.length(), 120));
    }

    private static boolean isRefusalItself(Throwable e) {
        // A server answers with a status.
        return e instanceof Asking.Failed || e.getClass().getName().startsWith("dev.heapwarden.");
    }

    private static boolean isDroppedFrames(Throwable e) {
        return e instanceof OutOfMemoryError
                && String.valueOf(e.getMessage()).contains("scalar replaced");
    }

    private interface Sought {
        boolean is(Throwable e);
    }

    private static Throwable find(Throwable e, Sought sought, Set<Throwable> seen) {
        if (e == null || !seen.add(e)) {
            return null;
        }
        if (sought.is(e)) {
            return e;
        }
        Throwable found = find(e.getCause(), sought, seen);
        for (Throwable suppressed : e.getSuppressed()) {
            found = found == null ? find(suppressed, sought, seen) : found;
        }
        return found;
    }
}
