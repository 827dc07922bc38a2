package dev.heapwarden.agent;

import java.util.function.Predicate;

/**
 * The door of the services in one container: decides whether a request comes in, and answers it if not.
 *
 * <p>It runs on the container's thread, before the container hands the request over. It takes part only
 * while some account is shut, but for the request's route, and never makes its thread wait. Whatever goes
 * wrong before the decision lets the request in. Thread-safe.
 */
abstract class Door implements Predicate<Object> {
    /** See {@link Natives#knock}. */
    static final long TOO_MANY = 1 << 20;

    /**
     * One more than the number that {@link Natives#serves} is told at the first request; 0: nothing, or it was told.
     * Compilers of different JDKs number the lines of an initialiser here in different ways.
     */
    private volatile int untold;

    /** The door that has let in the request which the thread runs: it is inside, and is not asked again. */
    private static final ThreadLocal<Door> PROBING = new ThreadLocal<>();

    /**
     * Whether the guarded method is to return at once, because the request was answered, here or by a
     * probe. Throws what a probe throws.
     *
     * @param guarded an array of objects of the guarded method: what says which service the request is for,
     *     what says what it asks, and further ones as the door is declared. Not of that type: the compilers
     *     of different JDKs write different bridge methods
     */
    @Override
    public final boolean test(Object guarded) {
        Object[] call = (Object[]) guarded;
        int loader;
        long answer;
        try {
            loader = mayAsk(PROBING.get()) && !wasLetIn(call) ? asking(call) : 0;
            if (loader == 0) {
                return false;
            }
            answer = knock(call, loader);
        } catch (Throwable failure) {
            // Ours, or the container's in a getter. Nothing was decided, and nothing was written.
            return false;
        }
        if (answer > 0) {
            remember(call);
            return Door.<RuntimeException>probe(this, call, loader, answer);
        }
        if (answer < 0) {
            int status = answer < -TOO_MANY ? 429 : 503;
            turnAway(call, status, Math.max(1, -answer % TOO_MANY / 1_000));
            return true;
        }
        return false;
    }

    /**
     * A request comes: finds its route, writes it into the thread's cell, and counts it. Allocates nothing
     * once its route and its thread are known. Never throws.
     *
     * @return whether any door is shut
     */
    final boolean comes(Object at, Object request) {
        int first = untold;
        if (first > 0 && begins(at, request)) {
            untold = 0;
            Natives.serves(first - 1);
        }
        if (!staysOnThread()) {
            return isAsked() && begins(at, request) && Natives.came(0);
        }
        int route = 0;
        Cell cell = null;
        try {
            cell = Cells.own();
            if (cell.letIn > 0) {
                // It was let in, and has been counted.
                return false;
            }
            boolean isNew = isNew(at, request);
            if (isNew || !isWithinRequest(at, request)) {
                cell.route = 0;
                route = isNew ? route(cell.path(), at, request) : 0;
                cell.route = route;
            }
        } catch (Throwable failure) {
            // Ours, or the container's in a getter: it has no route.
            if (cell != null) {
                cell.route = 0;
            }
        }
        return Natives.came(route);
    }

    /** Tells of the first request. Before the door is asked anything. */
    final void tellFirst(int library) {
        untold = library + 1;
    }

    private boolean begins(Object at, Object request) {
        try {
            return isNew(at, request);
        } catch (Throwable failure) {
            // The container's, in a getter.
            return false;
        }
    }

    private int route(RoutePath folded, Object at, Object request) throws Throwable {
        ClassLoader service = service(at, request);
        LoaderNumbers.Known known = isNobodys(service) ? null : LoaderNumbers.known(service);
        if (known == null) {
            return 0;
        }
        CharSequence path = path(at, request);
        if (path == null) {
            path = "";
        }
        folded.fold(method(at, request), path, begin(at, path));
        return known.routes().number(known.number, folded);
    }

    /** Whether the calling thread runs a probe that a door let in. */
    static boolean isProbing() {
        return PROBING.get() != null;
    }

    /** Whether the request comes from outside, and to this service: not if it was asked before. */
    abstract boolean isNew(Object at, Object request) throws Throwable;

    /**
     * Whether a request that is not new is a forward or an include, on the thread of the request that it is a
     * part of: its route stays.
     */
    boolean isWithinRequest(Object at, Object request) throws Throwable {
        return false;
    }

    /** Whether this is the type of a forward or an include. */
    static boolean isForwardOrInclude(Object dispatcherType) {
        String name = ((Enum<?>) dispatcherType).name();
        return name.equals("FORWARD") || name.equals("INCLUDE");
    }

    /** Whether this door turns anybody away. */
    boolean isAsked() {
        return true;
    }

    /**
     * Whether a request is served on the thread that brings it, until the guarded method returns. If not it has
     * no route: what it takes elsewhere would not count as the route's, and a route that grows would look like
     * one that keeps nothing. The end of a probe is then not seen either.
     */
    boolean staysOnThread() {
        return true;
    }

    /** Whether this is no service's loader. */
    boolean isNobodys(ClassLoader service) {
        return Loaders.plain(service);
    }

    /** The service's class loader. May be null. */
    abstract ClassLoader service(Object at, Object request) throws Throwable;

    /** The request's method. */
    abstract String method(Object at, Object request) throws Throwable;

    /** The request's path, of which the part inside the application is what the container finds servlets with. */
    abstract CharSequence path(Object at, Object request) throws Throwable;

    /** Where the part of a path that is inside the application begins. */
    int begin(Object at, CharSequence path) throws Throwable {
        return 0;
    }

    /** Whether a path is a context's, or below it. */
    static boolean isWithin(String context, String path) {
        int length = length(context);
        return path.startsWith(context) && (path.length() == length || path.charAt(length) == '/');
    }

    /** How much of a path is the context's. */
    static int length(String context) {
        return context == null || context.equals("/") ? 0 : context.length();
    }

    /**
     * Answers 503 or 429, so that no code of the application runs. The container ends the request when the
     * guarded method returns, also if this throws.
     */
    abstract void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable;

    /**
     * Calls the guarded method itself, as it was called.
     *
     * @return what it returns; true if it returns nothing
     */
    abstract boolean again(Object[] call) throws Throwable;

    /**
     * Whether a request is asked on a thread that runs one which this door has let in; null: none. On an event loop
     * the next of a connection may begin within the end of the one before.
     */
    private boolean mayAsk(Door within) {
        return within == null || within == this && !staysOnThread();
    }

    /** Whether this request was let in, and is asked again on another thread or by another part of the server. */
    boolean wasLetIn(Object[] call) throws Throwable {
        return false;
    }

    /** A request is let in as a probe, or freely. */
    void letIn(Object[] call) throws Throwable {}

    private void remember(Object[] call) {
        try {
            letIn(call);
        } catch (Throwable failure) {
            // It may be asked again.
        }
    }

    /** The number of the service's loader; 0 if the request is not asked. */
    private int asking(Object[] call) throws Throwable {
        Object at = call[0];
        Object request = call[1];
        if (!isNew(at, request)) {
            return 0;
        }
        ClassLoader service = service(at, request);
        return isNobodys(service) ? 0 : LoaderNumbers.of(service);
    }

    /** A path as the policy's list is compared with it. */
    String listed(String inside) {
        return inside;
    }

    private long knock(Object[] call, int loader) throws Throwable {
        Object at = call[0];
        Object request = call[1];
        CharSequence path = path(at, request);
        String inside = path == null ? "" : listed(path.toString().substring(begin(at, path)));
        return Natives.knock(loader, Cells.own().route, known(method(at, request)), known(inside));
    }

    /**
     * Runs the request inside, and says when it has ended. If it goes on asynchronously it has ended
     * for us when the method returns: what it takes afterwards is judged with the next evidence.
     */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> boolean probe(
            Door door, Object[] call, int loader, long ticket) throws T {
        Cell cell = null;
        int letIn = 0;
        try {
            PROBING.set(door);
            cell = Cells.own();
            letIn = cell.letIn;
            cell.letIn = Math.max(letIn, 0) + 1;
            return door.again(call);
        } catch (Throwable thrown) {
            // The caller of the guarded method gets what it would get without us, checked or not.
            throw (T) thrown;
        } finally {
            try {
                if (cell != null) {
                    cell.letIn = letIn;
                }
                PROBING.remove();
            } finally {
                Natives.probeEnded(loader, ticket, door.staysOnThread());
            }
        }
    }

    private void turnAway(Object[] call, int status, long seconds) {
        try {
            String retryAfter = Long.toString(seconds);
            answer(
                    call,
                    status,
                    retryAfter,
                    "This service is over its memory limit. Try again in " + retryAfter + " s.\n");
        } catch (Throwable failure) {
            // The client is gone, or the response is. The request stays outside.
        }
    }

    private static String known(String text) {
        return text == null || text.isEmpty() ? "/" : text;
    }
}
