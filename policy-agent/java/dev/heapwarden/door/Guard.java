package dev.heapwarden.door;

import java.lang.invoke.MethodHandles;
import java.util.function.BiPredicate;
import java.util.function.Predicate;

/**
 * Asked at the entry of the method by which a container hands a request to an application.
 *
 * <p>The agent defines a copy in the container's own class loader, which may not delegate our package to
 * the boot loader, and sets the fields before it inserts the first question. So this class names no other
 * class of Heapwarden. Thread-safe.
 */
public final class Guard {
    /**
     * Told of each request, by two of the guarded method's objects: those that say what service it is for
     * and what it asks. Whether any door is shut. Null: none is.
     */
    public static volatile BiPredicate<Object, Object> entry;

    /** Whether the guarded method is to return at once: it gets the method's object and arguments. */
    public static volatile Predicate<Object[]> door;

    private Guard() {}

    /** The question at the entry of an instance method with two arguments. */
    public static boolean isShut(Object object, Object first, Object second) {
        BiPredicate<Object, Object> told = entry;
        return told != null
                && told.test(object, first)
                && ask(new Object[] {object, first, second});
    }

    /** The question at the entry of an instance method with three arguments. */
    public static boolean isShut(Object object, Object first, Object second, Object third) {
        BiPredicate<Object, Object> told = entry;
        return told != null
                && told.test(object, first)
                && ask(new Object[] {object, first, second, third});
    }

    /** The question at the entry of an instance method with four arguments. */
    public static boolean isShut(
            Object object, Object first, Object second, Object third, Object fourth) {
        BiPredicate<Object, Object> told = entry;
        return told != null
                && told.test(second, fourth)
                && ask(new Object[] {object, first, second, third, fourth});
    }

    private static boolean ask(Object[] call) {
        Predicate<Object[]> asked = door;
        return asked != null && asked.test(call);
    }

    /** For the agent's half: it calls the guarded method, and that one alone, whatever overrides it. */
    private static MethodHandles.Lookup lookup() {
        return MethodHandles.lookup();
    }
}
