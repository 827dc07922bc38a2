package dev.heapwarden.agent;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;

/** Gives guards their doors. */
final class Doors {
    private static final int TOMCAT = 0;
    private static final int JETTY = 1;
    private static final int UNDERTOW = 2;

    private Doors() {}

    /**
     * Looks up everything that the door needs of the container's classes, and hands the door to the
     * guard. Called by the agent's loader thread, before it inserts the question into the class. Loads
     * classes of the container, and runs none of their code.
     *
     * @param guard the copy of {@code dev.heapwarden.door.Guard} in the container's loader
     * @param point the class whose method is to be guarded
     * @param server 0 Tomcat, 1 Jetty, 2 Undertow
     * @return false, and the guard lets everything in, if the container is not as the door knows it, or
     *     if the class is in a named module, which hides what the door needs
     */
    static boolean fit(Class<?> guard, Class<?> point, int server) {
        if (point.getModule().isNamed()) {
            return false;
        }
        try {
            Method lookup = guard.getDeclaredMethod("lookup");
            lookup.setAccessible(true);
            MethodHandles.Lookup near = (MethodHandles.Lookup) lookup.invoke(null);
            Door door = door(new Container(point, near), server);
            guard.getField("door").set(null, door);
            // The entry, which is asked first, is set last: there is no question without a door.
            guard.getField("entry").set(null, new Entry(door));
            return true;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError unknown) {
            return false;
        }
    }

    private static Door door(Container container, int server) throws ReflectiveOperationException {
        switch (server) {
            case TOMCAT:
                return new TomcatDoor(container);
            case JETTY:
                return new JettyDoor(container);
            case UNDERTOW:
                return new UndertowDoor(container);
            default:
                throw new IllegalArgumentException();
        }
    }
}
