package dev.heapwarden.agent;

import java.util.Arrays;
import java.util.function.IntConsumer;
import java.util.function.IntUnaryOperator;

/**
 * The doors that a policy has put at methods: {@code java.lang.HeapwardenDoor} asks it at their entries and
 * tells it when they are left.
 *
 * <p>While no account is over its limit, one native call is all. Thread-safe. What another object of this class was
 * asked may be told to this one.
 */
// Nobody calls andThen, of which both interfaces have one.
@SuppressWarnings("overloads")
final class MethodDoor implements IntUnaryOperator, IntConsumer {
    /** The first number of a door. */
    private static final int FIRST = 1_000;

    private static final int FIRST_ROOM = 64;

    /** For the method's end: this call is a probe. Above it, what {@link Cell#begin} said. */
    private static final int PROBE = 1;

    /** The probe that the calling thread has been let in as, if it is one. */
    private static final ThreadLocal<AskedProbe> INSIDE = new ThreadLocal<>();

    /**
     * By door, from {@link Natives#routeAt}. Those of another policy may be others: then the agent makes another
     * object. A race may lose one, which is asked for again.
     */
    private volatile int[] routes = new int[FIRST_ROOM];

    private MethodDoor() {}

    /** Called by the agent, whenever doors have changed. */
    static Object make() {
        return new MethodDoor();
    }

    /** Throws the error of a refusal, which {@link Natives#enterDoor} leaves. */
    @Override
    public int applyAsInt(int door) {
        int route = 0;
        Cell cell = null;
        try {
            int known = route(door);
            if (known > 0) {
                cell = Cells.own();
                route = cell.mayBegin(known) ? known : 0;
            }
        } catch (Throwable failure) {
            // No room for a cell: it has no route.
        }
        // Counted before it is asked, as a request is.
        int token = Natives.came(route) ? ask(door, route) : 0;
        return route == 0 ? token : token | cell.begin(route) << 1;
    }

    @Override
    public void accept(int token) {
        Cell cell = Cells.CELLS.get();
        if (cell != null && token > PROBE) {
            cell.end(token >>> 1);
        }
        if ((token & PROBE) != 0) {
            end();
        }
    }

    /** The route of the calls through a door; not above 0: none. */
    private int route(int door) {
        int at = door - FIRST;
        int[] known = routes;
        int route = at < known.length ? known[at] : 0;
        return route == 0 ? find(door) : route;
    }

    private int find(int door) {
        int route = Natives.routeAt(door);
        if (route != 0) {
            int at = door - FIRST;
            int[] known = routes;
            if (at >= known.length) {
                known = Arrays.copyOf(known, Integer.highestOneBit(at) * 2);
            }
            known[at] = route;
            routes = known;
        }
        return route;
    }

    /** While some account is over its limit. */
    private static int ask(int door, int route) {
        int payer = Natives.refuserAt(door);
        if (payer == 0) {
            return 0;
        }
        Cell cell = Cells.CELLS.get();
        if (cell != null
                && (cell.letIn > 0 || cell.letIn < 0 && Natives.isInside(payer, cell.letIn))) {
            // Part of what this door or another has let in.
            return 0;
        }
        long ticket = Natives.enterDoor(door, payer, route);
        return ticket == 0 ? 0 : begin(payer, ticket);
    }

    private static int begin(int payer, long ticket) {
        boolean begun = false;
        try {
            Cell cell = Cells.own();
            INSIDE.set(new AskedProbe(payer, ticket, cell.letIn));
            cell.letIn = 1;
            begun = true;
            return PROBE;
        } finally {
            if (!begun) {
                Natives.askedEnded(payer, ticket);
            }
        }
    }

    private static void end() {
        AskedProbe probe = INSIDE.get();
        if (probe == null) {
            // Nobody of ours calls it then.
            return;
        }
        try {
            Cells.own().letIn = probe.before;
            INSIDE.remove();
        } finally {
            probe.run();
        }
    }
}
