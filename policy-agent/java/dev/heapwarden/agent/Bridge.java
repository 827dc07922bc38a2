package dev.heapwarden.agent;

import java.lang.ref.WeakReference;
import java.util.function.Consumer;

/**
 * The entry points for copies of the API, from whatever loader, by method handles; and for the agent.
 * Only types of the JDK pass through, so that no loader has to agree with another.
 *
 * <p>The agent defines the classes in this order, superclasses first: Natives, Agent, NativeAgent,
 * RoutePath, Inherited, Context, Cell, Cells, Loaders, LoaderKey, LoaderProbe, ServiceRoutes,
 * LoaderNumbers, Container, Door, Entry, AskedProbe, Inside, Doors,
 * Uncaught, Home, ScopeName, Names, Services, Misuse, Subscription, Delivery, Subscriptions, Bridge.
 *
 * <p>Anybody in the JVM can call these methods. None gives power over another's account: what is
 * handed in is checked, and tokens are good on the thread alone that got them.
 */
public final class Bridge {
    private static final Agent AGENT = NativeAgent.AGENT;
    private static final Misuse MISUSE = new Misuse(AGENT);
    private static final Services SERVICES = new Services(AGENT);
    private static final Subscriptions SUBSCRIPTIONS = new Subscriptions(AGENT, MISUSE);

    /** Whether the agent was asked if it reads cells, and inherited ones. */
    private static volatile boolean probedCell;

    /** Whether the agent was told that it is to read the cells of threads. */
    private static volatile boolean announced;

    private static volatile boolean probedInherited;

    /** Whether the answer was no. */
    private static volatile boolean blind;

    private Bridge() {}

    /**
     * Introduces a copy of the API.
     *
     * @param own the loader of the copy
     * @return to be handed in with each call
     */
    public static Object home(ClassLoader own) {
        return new Home(own);
    }

    /** Whether scopes have effect, as far as is known. */
    public static boolean active() {
        return !blind;
    }

    /**
     * Enters the scope that the calling thread entered last, if that is what is wanted. Small, and
     * apart from {@link #enter}, so that compilers take it into their callers.
     *
     * @param home from {@link #home}
     * @param name the scope's name
     * @return what {@link #close} wants; 0 where nothing was entered: try {@link #enter}
     */
    public static long again(Object home, String name) {
        Cell cell = Cells.CELLS.get();
        if (cell == null) {
            return 0;
        }
        ClassLoader loader = Loaders.context(Thread.currentThread());
        Context context = cell.recall((Home) home, name, loader);
        return context == null ? 0 : cell.push(context, false);
    }

    /**
     * Enters a scope on the calling thread.
     *
     * @param home from {@link #home}
     * @param name the scope's name
     * @param passOn whether threads inherit it that this one makes while it is open
     * @return what {@link #close} wants; 0 where nothing was entered
     * @throws IllegalArgumentException if no scope may have this name
     */
    public static long enter(Object home, String name, boolean passOn) {
        return push(find((Home) home, name), passOn);
    }

    /**
     * As {@link #enter}, in a purse of its own: not the one that others have who enter a scope of this
     * name. For tests. The purse ends when no reference to what {@link #capture} returned is left.
     *
     * @throws IllegalArgumentException if no scope may have this name
     */
    public static long fresh(Object home, String name, boolean passOn) {
        check(name);
        Names names = SERVICES.of(Loaders.context(Thread.currentThread()), (Home) home);
        Context context = new Context(AGENT, name, names.loader.get());
        if (context.purse == 0) {
            MISUSE.report(Misuse.FOLDED);
        }
        return push(context, passOn);
    }

    /**
     * Closes a scope of the calling thread. What cannot be done is counted and logged, and does
     * nothing.
     *
     * @param token from {@link #enter} or {@link #resume}
     */
    public static void close(long token) {
        if (token == 0) {
            return;
        }
        Cell cell = Cells.CELLS.get();
        if (cell == null || !cell.owns(token)) {
            MISUSE.report(Misuse.THREAD);
            return;
        }
        int outcome = cell.pop(token);
        if (outcome != Cell.CLOSED) {
            MISUSE.report(outcome);
        }
    }

    /**
     * The scope that the calling thread is in, for {@link #resume}; null for none. In work that was let in as a
     * probe it says that, too.
     */
    public static Object capture() {
        Cell cell = Cells.CELLS.get();
        if (cell != null && cell.letIn < 0) {
            return new Inside(cell.top(), cell.letIn);
        }
        return top();
    }

    /**
     * Enters a scope that was captured on this thread or another.
     *
     * @param captured from {@link #capture}; null enters no scope, in which nothing is inherited
     *     either
     * @return what {@link #close} wants; 0 where nothing was entered
     */
    public static long resume(Object captured) {
        if (captured instanceof Inside) {
            Inside inside = (Inside) captured;
            return push(inside.context, inside.letIn);
        }
        return push(captured == null ? Context.NONE : (Context) captured, false);
    }

    /**
     * The calling thread does work that was let in as a probe, in the scope that it is in. The work has an
     * allowance of which all of its threads take, until it ends.
     *
     * @param probe the {@link Runnable} from {@link #ask}
     * @return what {@link #close} wants; 0 where nothing was entered
     */
    public static long inside(Object probe) {
        return push(top(), ((AskedProbe) probe).mark());
    }

    /**
     * Begins a section on the calling thread in which nothing is refused, within the policy's bounds.
     *
     * @return what {@link #unmask} wants
     */
    public static long mask() {
        Cell cell = cell();
        cell.masks++;
        return cell.token(0);
    }

    /**
     * Ends a section.
     *
     * @param token from {@link #mask}
     * @return false, and nothing has ended, if it was begun on another thread
     */
    public static boolean unmask(long token) {
        Cell cell = Cells.CELLS.get();
        if (cell == null || !cell.owns(token) || cell.masks == 0) {
            MISUSE.report(Misuse.THREAD);
            return false;
        }
        cell.masks--;
        return true;
    }

    /** Counts and logs that a section was ended twice. */
    public static void unmaskedTwice() {
        MISUSE.report(Misuse.TWICE);
    }

    /** The published name of the account that pays for what the calling thread allocates. */
    public static String current() {
        return AGENT.current(purse());
    }

    /**
     * Whether the account that pays for the calling thread takes new work: it is not refused. Some tens of
     * nanoseconds, and no allocation once the loader is known.
     *
     * @param home from {@link #home}: whose service it is if the context loader is the JVM's own
     */
    public static boolean admits(Object home) {
        int purse = purse();
        if (purse != 0) {
            return !Natives.refuses(purse, 0);
        }
        ClassLoader loader = service((Home) home);
        return loader == null || !Natives.refuses(0, LoaderNumbers.of(loader));
    }

    /**
     * Asks whether the account that pays for the calling thread takes a request on. Never waits, and lets
     * everything in on a thread that is inside a probe of the agent's own door, or of one that asked before. What is let in
     * as a probe is {@link #inside} on the calling thread until the scope is closed that it is in; nothing is, outside
     * of all open scopes.
     *
     * @param home from {@link #home}, as for {@link #admits}
     * @param method the request's method; empty if it has none
     * @param path its path inside the application; empty if it has none
     * @return null: let in. A {@link Runnable}: let in as the probe, to be run at its end, on any thread. A
     *     {@link Long}: turned away, to be tried again in as many milliseconds
     */
    public static Object ask(Object home, String method, String path) {
        int purse = purse();
        ClassLoader loader = purse == 0 ? service((Home) home) : null;
        int number = loader == null ? 0 : LoaderNumbers.of(loader);
        int refuser = purse == 0 && number == 0 ? 0 : Natives.refuser(purse, number);
        if (refuser == 0 || Door.isProbing()) {
            return null;
        }
        Cell cell = Cells.CELLS.get();
        if (cell != null && cell.letIn < 0 && Natives.isInside(refuser, cell.letIn)) {
            return null;
        }
        long answer = Natives.ask(refuser, method, path);
        if (answer != 0 && !method.isEmpty()) {
            asksItself((Home) home, refuser);
        }
        if (answer > 0) {
            return begin(cell, refuser, answer);
        }
        if (answer < 0) {
            return Long.valueOf(-answer);
        }
        return null;
    }

    /** Remembers that a program asks for its own account, of which its libraries' doors ask as well: no tenant's. */
    private static void asksItself(Home home, int refuser) {
        ClassLoader own = home.loader.get();
        ClassLoader loader = own == null ? Loaders.SYSTEM : own;
        if (Natives.refuser(0, LoaderNumbers.of(loader)) == refuser) {
            Loaders.asks(loader);
        }
    }

    /** A probe that is not begun for want of memory has ended. */
    private static AskedProbe begin(Cell cell, int refuser, long ticket) {
        boolean begun = false;
        try {
            AskedProbe probe = new AskedProbe(refuser, ticket, 0);
            if (cell != null) {
                cell.letIn(probe.mark());
            }
            begun = true;
            return probe;
        } finally {
            if (!begun) {
                Natives.askedEnded(refuser, ticket);
            }
        }
    }

    /** The loader that names the calling thread's service; null for none. */
    private static ClassLoader service(Home home) {
        ClassLoader loader = Loaders.context(Thread.currentThread());
        return Loaders.plain(loader) ? home.loader.get() : loader;
    }

    /** The purse of the scope that the calling thread is in; 0 for none. */
    public static int purse() {
        Context context = top();
        return context == null ? 0 : context.purse;
    }

    /**
     * Figures of an account, at most a second old.
     *
     * @param account its published name
     * @return live bytes, charged bytes, standard error in bytes, live objects, soft limit in bytes
     *     or -1, limit in bytes or -1, state (0 open, 1 suspect, 2 over), refusals, refusals that
     *     were not thrown, allocated bytes, allocated objects; then live bytes, charged bytes and
     *     standard error with the scopes beneath; then the standard error of the live bytes, and that
     *     of the live bytes with the scopes beneath. Those before are of the charged bytes. Null where
     *     there is no such account
     */
    public static long[] read(String account) {
        return Natives.read(account, 0);
    }

    /**
     * Figures of one purse, read now; for tests.
     *
     * @return live bytes, charged bytes, standard error of the live bytes, live objects, allocated
     *     bytes, allocated objects, peak of the live bytes since {@link #watch}, 1 if every allocation
     *     is counted, the mean bytes between samples (0 if every one is counted), and the standard
     *     errors of the peak and of the allocated bytes
     */
    public static long[] figures(int purse) {
        return Natives.figures(purse);
    }

    /** Notes from now on the peak of a purse's live bytes, at each collection; or stops that. */
    public static void watch(int purse, boolean on) {
        Natives.watch(purse, on);
    }

    /**
     * The classes of which a purse has most live bytes.
     *
     * @param most how many at the most
     * @return for each its name, live bytes, live objects and allocated bytes, one after the other
     */
    public static Object[] classes(int purse, int most) {
        return Natives.classes(purse, most);
    }

    /**
     * Waits, after {@code System.gc()}, until what died before the call is refunded.
     *
     * @return false if that took longer
     */
    public static boolean settle(long millis) {
        return Natives.settle(millis);
    }

    /**
     * Takes from now on stacks of what a purse is charged, or stops that; for tests. Their number in a
     * second is bounded.
     */
    public static void trace(int purse, boolean on) {
        Natives.trace(purse, on);
    }

    /**
     * Where what is live of a class was allocated since {@link #trace}, the places with most bytes first.
     *
     * @param type the class's name as {@link #classes} gives it
     * @param most how many places at the most
     * @return for each its frames, one a line, from the program's first one down, and its share in
     *     thousandths
     */
    public static Object[] sites(int purse, String type, int most) {
        return Natives.sites(purse, type, most);
    }

    /**
     * Registers a listener to an account and to those beneath it. It is not held: the caller has to.
     *
     * @param account its published name; null for the account that pays for the calling thread
     * @param receiver gets events as {@link #announce} makes them, on a thread of its own
     * @return what {@link #silence} wants; null where there are too many
     */
    public static Object listen(String account, Consumer<Object[]> receiver) {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        return SUBSCRIPTIONS.add(receiver, loader, top(), account);
    }

    /** Ends what {@link #listen} began. Idempotent. */
    public static void silence(Object subscription) {
        SUBSCRIPTIONS.remove((Subscription) subscription);
    }

    /**
     * Called by the agent, on a thread of its own, when an account's state changes. Returns at once.
     * Private, so that no other code can send events to listeners; the agent can call it all the same.
     * Listeners get an array of account, parent, kind and the five figures.
     *
     * @param account the published name
     * @param parent the published name of the account that this one is beneath; null for none
     * @param kind 0 over the soft limit, 1 over the limit, 2 no longer over the limit, 3 no longer
     *     over the soft limit
     * @param live live bytes
     * @param charged charged bytes
     * @param error standard error in bytes
     * @param soft soft limit in bytes, or -1
     * @param limit limit in bytes, or -1
     */
    private static void announce(
            String account,
            String parent,
            int kind,
            long live,
            long charged,
            long error,
            long soft,
            long limit) {
        SERVICES.tidy();
        Object[] event = {
            account, parent, kind, new long[] {live, charged, error, soft, limit},
        };
        SUBSCRIPTIONS.announce(event, account, parent);
    }

    /** Called by the agent every few seconds: ends the purses of loaders that are gone. */
    private static void tidy() {
        SERVICES.tidy();
    }

    /** The context of a name where the calling thread does not remember it. */
    private static Context find(Home home, String name) {
        Cell cell = cell();
        ClassLoader loader = Loaders.context(Thread.currentThread());
        Names names = cell.names(home, loader);
        if (names == null) {
            names = SERVICES.of(loader, home);
        }
        Context context = names.known(name);
        if (context == null) {
            check(name);
            context = names.make(name, System.nanoTime());
            if (!context.name.equals(name)) {
                MISUSE.report(Misuse.FOLDED);
                return context;
            }
        }
        WeakReference<ClassLoader> weakly =
                Loaders.plain(loader) ? Loaders.weakly(loader) : names.loader;
        cell.remember(home, name, weakly, names, context);
        return context;
    }

    /** Throws where no scope may have this name. */
    private static void check(String name) {
        String fault = ScopeName.fault(name);
        if (fault != null) {
            MISUSE.report(Misuse.NAME);
            throw new IllegalArgumentException(fault);
        }
    }

    private static long push(Context context, boolean passOn) {
        Cell cell = cell();
        if (passOn) {
            AGENT.use(true);
        }
        long token = cell.push(context, passOn);
        if (token == 0) {
            MISUSE.report(Misuse.DEPTH);
        } else if (!probedCell || passOn && !probedInherited) {
            probe(cell, passOn);
        }
        return token;
    }

    /** Enters a scope, or none, for work that was let in. */
    private static long push(Context context, int letIn) {
        long token = push(context == null ? Context.NONE : context, false);
        if (token != 0) {
            Cells.own().letIn(letIn);
        }
        return token;
    }

    /** The scope that the calling thread is in; null for none. */
    private static Context top() {
        Cell cell = Cells.CELLS.get();
        if (cell != null) {
            return cell.top();
        }
        Inherited inherited = Cells.inherited();
        return inherited == null ? null : inherited.context;
    }

    private static Cell cell() {
        // Not where the cell is made: doors make cells, too.
        if (!announced) {
            AGENT.use(false);
            announced = true;
        }
        return Cells.own();
    }

    /** Asks the agent once whether it reads the cells of threads. */
    private static void probe(Cell cell, boolean passOn) {
        Inherited inherited = Cells.inherited();
        probedCell = true;
        probedInherited |= passOn;
        if (!Natives.probe(cell.purse, inherited == null ? 0 : inherited.purse)) {
            blind = true;
        }
    }
}
