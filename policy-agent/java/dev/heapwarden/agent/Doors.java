package dev.heapwarden.agent;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;

/** Gives guards their doors. */
final class Doors {
    private Doors() {}

    /**
     * Looks up everything that the door needs of the container's classes, and hands the door to the
     * guard. Called by the agent's loader thread, before it inserts the question into the class. Loads
     * classes of the container, and runs none of their code but what makes constants.
     *
     * @param guard the copy of {@code dev.heapwarden.door.Guard} in the container's loader
     * @param point the class whose method is to be guarded
     * @param kind the {@link Door} for it
     * @param library the number of the server if it is a library, whose first request is to be told; -1 if not
     * @return false, and the guard lets everything in, if the container is not as the door knows it, or
     *     if the class is in a named module, which hides what the door needs
     */
    static boolean fit(Class<?> guard, Class<?> point, Class<?> kind, int library) {
        if (point.getModule().isNamed()) {
            return false;
        }
        try {
            Method lookup = guard.getDeclaredMethod("lookup");
            lookup.setAccessible(true);
            MethodHandles.Lookup near = (MethodHandles.Lookup) lookup.invoke(null);
            Container container = new Container(point, near);
            Door door =
                    (Door) kind.getDeclaredConstructor(Container.class).newInstance(container);
            door.tellFirst(library);
            guard.getField("door").set(null, door);
            // The entry, which is asked first, is set last: there is no question without a door.
            guard.getField("entry").set(null, new Entry(door));
            return true;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError unknown) {
            return false;
        }
    }
}
