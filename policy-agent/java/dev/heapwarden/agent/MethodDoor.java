package dev.heapwarden.agent;

import java.util.function.IntConsumer;
import java.util.function.IntUnaryOperator;

/**
 * The doors that a policy has put at methods: {@code java.lang.HeapwardenDoor} asks it at their entries and
 * tells it when they are left.
 *
 * <p>While no account is over its limit, one native call is all. Thread-safe.
 */
// Nobody calls andThen, of which both interfaces have one.
@SuppressWarnings("overloads")
final class MethodDoor implements IntUnaryOperator, IntConsumer {
    /** For the method's end: this call is a probe. 0 is for all others, of which no end is told. */
    private static final int PROBE = 1;

    /** What the calling thread has been let in as, if it is a probe. */
    private static final ThreadLocal<AskedProbe> INSIDE = new ThreadLocal<>();

    private MethodDoor() {}

    /** Called by the agent, once. */
    static Object make() {
        return new MethodDoor();
    }

    /** Throws the error of a refusal, which {@link Natives#enterDoor} leaves. */
    @Override
    public int applyAsInt(int door) {
        if (!Natives.anyShut()) {
            return 0;
        }
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
        long ticket = Natives.enterDoor(door, payer);
        return ticket == 0 ? 0 : begin(payer, ticket);
    }

    @Override
    public void accept(int token) {
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
}
