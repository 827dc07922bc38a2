package dev.heapwarden.agent;

/**
 * The door of a server that is a library: a request is for the program, or the application, whose class loader has
 * the server's classes.
 */
abstract class LibraryDoor extends Door {
    private final ClassLoader loader;

    LibraryDoor(Container library) {
        loader = library.loader();
    }

    @Override
    final ClassLoader service(Object at, Object request) {
        return loader;
    }

    /** The loader of the class path is the program's; the agent knows where there is no program. */
    @Override
    final boolean isNobodys(ClassLoader service) {
        return service == null;
    }

    /**
     * Routers of these servers resolve and decode paths each in its own way: one that needs it is listed where all
     * paths are, and else nowhere.
     */
    @Override
    final String listed(String inside) {
        return RequestTarget.isPlain(inside) ? inside : "/%";
    }

    @Override
    boolean isNew(Object at, Object request) throws Throwable {
        return true;
    }
}
