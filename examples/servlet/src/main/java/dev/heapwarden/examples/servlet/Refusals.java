package dev.heapwarden.examples.servlet;

import java.util.Set;

/**
 * Recognises the errors of a refusal without depending on them, by the names of their classes. The
 * agent defines these in the boot loader, and where there is no agent there is none to be linked to;
 * an application that brings {@code heapwarden-api} is refused with errors of its own copy, which no
 * type check in another loader would know. The classes are final: their names are enough.
 */
final class Refusals {
    private static final Set<String> NAMES =
            Set.of(
                    "dev.heapwarden.MemoryQuotaExceededError",
                    "dev.heapwarden.AllocationRefusedError",
                    "dev.heapwarden.MemoryQuotaExceededException");

    /** A chain longer than this, or one that bites its own tail, is given up. */
    private static final int MAX_CAUSES = 64;

    private Refusals() {}

    /** Whether a refusal is this throwable or one of its causes. */
    static boolean caused(Throwable thrown) {
        Throwable current = thrown;
        for (int i = 0; current != null && i < MAX_CAUSES; i++) {
            if (NAMES.contains(current.getClass().getName())) {
                return true;
            }
            current = current.getCause();
        }
        return false;
    }
}
