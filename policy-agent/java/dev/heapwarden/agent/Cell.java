package dev.heapwarden.agent;

import java.lang.ref.WeakReference;

/**
 * One thread's open scopes, and the scope it entered last. Confined to its thread, but for the
 * agent, which reads {@link #purse}, {@link #masks}, {@link #letIn}, {@link #route} and {@link #calls} of a stopped or of
 * its own thread.
 *
 * <p>Its only place among the values of thread-locals is {@link Cells#CELLS}: the agent looks for the
 * class.
 */
public final class Cell {
    /** Open scopes of one thread at the most. */
    static final int MAX_DEPTH = 64;

    /** Outcome of {@link #pop}: it was the innermost one. */
    static final int CLOSED = -1;

    private static final int FIRST_ROOM = 4;

    /** Bits of a route's number in {@link #calls}, and those that tell the routes of one account apart. */
    private static final int CALL_BITS = 16;

    private static final int ROUTE_BITS = 6;

    private static final int OUTER = 1;
    private static final int INNER = 2;

    /**
     * The purse in force, 0 for none. Written last when a scope is entered and first when one is
     * closed, so that a reader finds its context in the stack.
     */
    int purse;

    /** How many masked sections are open. */
    int masks;

    /**
     * The work on this thread that a shut door has let in. More than 0: so many requests and calls that stay on this
     * thread. Less than 0: work that may be on many threads, by its {@link AskedProbe#mark}; the agent knows whether it
     * has ended. 0: nothing.
     */
    int letIn;

    /**
     * The number of the route of the request that the thread serves, or served last; 0 for none. The next
     * request of any service writes it anew, and nobody at the end: outside of requests the service's
     * code rarely runs on such a thread, and the agent looks whether the route is of the account that pays.
     */
    int route;

    /**
     * The routes of the calls that the thread is in, of methods with a door: the outermost one in the lower half,
     * in the upper half one of another account inside it; 0 for none. The rules are those of {@code
     * policy_core::enforce::routes::calls}.
     */
    int calls;

    /** Where the thread's requests are folded; made for the first. */
    private RoutePath path;

    /** Tells this thread's scopes from others'. Not 0. */
    final int number;

    /** The scope that this thread inherited; null for none. Keeps its purse alive. */
    final Context base;

    /** The open scopes, the innermost last. */
    private Context[] contexts = new Context[FIRST_ROOM];

    /** Beside {@link #contexts}: the serial number under which each was entered. */
    private int[] serials = new int[FIRST_ROOM];

    /** Beside {@link #contexts}: a bit for each scope that children inherit. */
    private long passed;

    /** Beside {@link #contexts}: a bit for each scope that has brought its own {@link #letIn}. */
    private long lent;

    /** The value of {@link #letIn} before each of those. Made for the first. */
    private int[] before;

    private int depth;
    private int serial;

    /** The arguments of the latest {@link #remember}. */
    private String lastName;
    private Home lastHome;
    private WeakReference<ClassLoader> lastLoader;
    private WeakReference<Names> lastNames;
    private WeakReference<Context> lastContext;

    Cell(int number, Context base) {
        this.number = number;
        this.base = base;
        this.purse = base == null ? 0 : base.purse;
    }

    /** Whether a call of this route may {@link #begin}: no call of its account is open, and there is room. */
    boolean mayBegin(int begun) {
        int open = calls;
        return open == 0
                || open >>> CALL_BITS == 0 && begun - 1 >>> ROUTE_BITS != open - 1 >>> ROUTE_BITS;
    }

    /**
     * A call of this route begins.
     *
     * @return for {@link #end}, not 0
     */
    int begin(int begun) {
        int open = calls;
        calls = open | begun << (open == 0 ? 0 : CALL_BITS);
        return open == 0 ? OUTER : INNER;
    }

    /** A call has ended, and whatever it was around whose end was not told. */
    void end(int level) {
        calls = level == OUTER ? 0 : calls & (1 << CALL_BITS) - 1;
    }

    /** Where the thread's requests are folded. */
    RoutePath path() {
        if (path == null) {
            path = new RoutePath();
        }
        return path;
    }

    /**
     * The context that this thread entered last, if it has this name and was entered from the same
     * copy of the API under the same context loader. Null if not, or if it is gone.
     *
     * @param loader the thread's context loader, not null: of a cleared reference null is true
     */
    Context recall(Home home, String name, ClassLoader loader) {
        String last = lastName;
        if (last == null || home != lastHome || !lastLoader.refersTo(loader)) {
            return null;
        }
        return name == last || name.equals(last) ? lastContext.get() : null;
    }

    /** The names of the service that this thread entered a scope in last, as {@link #recall}. */
    Names names(Home home, ClassLoader loader) {
        return lastName != null && home == lastHome && lastLoader.refersTo(loader)
                ? lastNames.get()
                : null;
    }

    /**
     * For {@link #recall} and {@link #names}.
     *
     * @param loader refers to the context loader, which need not be that of the names
     */
    void remember(
            Home home,
            String name,
            WeakReference<ClassLoader> loader,
            Names names,
            Context context) {
        lastName = null;
        lastHome = home;
        lastLoader = loader;
        lastNames = names.weakly;
        lastContext = context.weakly;
        lastName = name;
    }

    /** The innermost scope, open or inherited; null for none. */
    Context top() {
        return depth == 0 ? base : contexts[depth - 1];
    }

    /** How many scopes are open. */
    int depth() {
        return depth;
    }

    /**
     * Enters a scope.
     *
     * @param passOn children inherit it
     * @return the token that closes it; 0, and nothing entered, where too many are open
     */
    long push(Context context, boolean passOn) {
        int at = depth;
        if (at == contexts.length && !widen()) {
            return 0;
        }
        int mine = ++serial;
        contexts[at] = context;
        serials[at] = mine;
        if (!context.entered) {
            context.entered = true;
        }
        if (passOn) {
            Cells.pass(context);
            passed |= 1L << at;
        }
        depth = at + 1;
        purse = context.purse;
        return token(mine);
    }

    /**
     * The scope that was entered last is of work that was let in, until it is closed. Nothing if no scope is
     * open, or a door that watches this thread has let in what it does.
     *
     * @param mark from {@link AskedProbe#mark}
     */
    void letIn(int mark) {
        if (depth == 0 || letIn > 0) {
            return;
        }
        if (before == null) {
            before = new int[MAX_DEPTH];
        }
        long bit = 1L << depth - 1;
        if ((lent & bit) == 0) {
            before[depth - 1] = letIn;
            lent |= bit;
        }
        letIn = mark;
    }

    /**
     * Closes a scope of this thread, wherever in the stack it stands.
     *
     * @return {@link #CLOSED}, {@link Misuse#ORDER} for one that was not the innermost, or {@link
     *     Misuse#TWICE} where it is not open
     */
    int pop(long token) {
        int mine = (int) token;
        int top = depth - 1;
        if (top >= 0 && serials[top] == mine) {
            purse = top > 0 ? contexts[top - 1].purse : base == null ? 0 : base.purse;
            depth = top;
            contexts[top] = null;
            if (passed != 0) {
                take(top);
            }
            if (lent != 0) {
                giveBack(top);
            }
            return CLOSED;
        }
        for (int at = top - 1; at >= 0; at--) {
            if (serials[at] == mine) {
                System.arraycopy(contexts, at + 1, contexts, at, top - at);
                System.arraycopy(serials, at + 1, serials, at, top - at);
                contexts[top] = null;
                depth = top;
                if (passed != 0) {
                    take(at);
                }
                if (lent != 0) {
                    giveBack(at);
                }
                return Misuse.ORDER;
            }
        }
        return Misuse.TWICE;
    }

    /** Whether a token was given out by this cell. */
    boolean owns(long token) {
        return (int) (token >>> 32) == number;
    }

    /** A token of this cell with a serial number that it may have given out. */
    long token(int mine) {
        return ((long) number << 32) | (mine & 0xffff_ffffL);
    }

    /** Takes the bit of a closed scope out of {@link #passed}; children inherit what is left. */
    private void take(int at) {
        long below = passed & ((1L << at) - 1);
        // In two steps: a shift by 64 is none.
        long above = passed >>> at >>> 1 << at;
        boolean innermost = above == 0 && (passed & 1L << at) != 0;
        passed = above | below;
        if (innermost) {
            int left = 63 - Long.numberOfLeadingZeros(passed);
            Cells.pass(left < 0 ? base : contexts[left]);
        }
    }

    /** Takes the bit of a closed scope out of {@link #lent}: what it has brought ends with it. */
    private void giveBack(int at) {
        long below = lent & ((1L << at) - 1);
        long above = lent >>> at >>> 1;
        boolean ends = (lent & 1L << at) != 0;
        if (above != 0) {
            if (ends) {
                // Another has brought its own since.
                before[at + 1 + Long.numberOfTrailingZeros(above)] = before[at];
            }
            System.arraycopy(before, at + 1, before, at, MAX_DEPTH - at - 1);
        } else if (ends && letIn < 0) {
            letIn = before[at];
        }
        lent = above << at | below;
    }

    private boolean widen() {
        int room = contexts.length * 2;
        if (room > MAX_DEPTH) {
            return false;
        }
        Context[] moreContexts = new Context[room];
        int[] moreSerials = new int[room];
        System.arraycopy(contexts, 0, moreContexts, 0, depth);
        System.arraycopy(serials, 0, moreSerials, 0, depth);
        contexts = moreContexts;
        serials = moreSerials;
        return true;
    }
}
