package dev.heapwarden.door;

import java.lang.invoke.MethodHandles;
import java.util.function.BiPredicate;
import java.util.function.Predicate;

/**
 * Asked at the entry of the method by which a container hands a request to an application.
 *
 * <p>The agent defines a copy in the container's own class loader, which may not delegate our package to
 * the boot loader, under a name for each door, and sets the fields before it inserts the first question. So
 * this class names no other class of Heapwarden, and has none inside. Thread-safe.
 */
public final class Guard {
    /**
     * Told of each request, by the first two objects: those that say what service it is for and what it
     * asks. Whether any door is shut. Null: none is.
     */
    public static volatile BiPredicate<Object, Object> entry;

    /** Whether the guarded method is to return at once: it gets all the objects. */
    public static volatile Predicate<Object[]> door;

    private Guard() {}

    /** The question of a door that gets two objects. */
    public static boolean isShut(Object at, Object request) {
        BiPredicate<Object, Object> told = entry;
        return told != null && told.test(at, request) && ask(new Object[] {at, request});
    }

    /** The question of a door that gets three objects. */
    public static boolean isShut(Object at, Object request, Object third) {
        BiPredicate<Object, Object> told = entry;
        return told != null
                && told.test(at, request)
                && ask(new Object[] {at, request, third});
    }

    /** The question of a door that gets four objects. */
    public static boolean isShut(Object at, Object request, Object third, Object fourth) {
        BiPredicate<Object, Object> told = entry;
        return told != null
                && told.test(at, request)
                && ask(new Object[] {at, request, third, fourth});
    }

    /** The question of a door that gets five objects. */
    public static boolean isShut(
            Object at, Object request, Object third, Object fourth, Object fifth) {
        BiPredicate<Object, Object> told = entry;
        return told != null
                && told.test(at, request)
                && ask(new Object[] {at, request, third, fourth, fifth});
    }

    /** The question of a door that gets seven objects. */
    public static boolean isShut(
            Object at,
            Object request,
            Object third,
            Object fourth,
            Object fifth,
            Object sixth,
            Object seventh) {
        BiPredicate<Object, Object> told = entry;
        return told != null
                && told.test(at, request)
                && ask(new Object[] {at, request, third, fourth, fifth, sixth, seventh});
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
