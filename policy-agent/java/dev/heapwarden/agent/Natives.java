package dev.heapwarden.agent;

/**
 * The agent's functions for the classes here; it binds these methods when it defines the class.
 *
 * <p>They never throw and never run code of an application. Each may be called on any thread.
 */
final class Natives {
    private Natives() {}

    /**
     * Has the agent put its functions in front of native methods of the JDK. It must be called from
     * here: where code of another loader does that, the VM prints a warning.
     */
    static void watchNativeMemory() {
        watchNativeMemoryFromHere();
    }

    private static native void watchNativeMemoryFromHere();

    /**
     * The self-test: whether the agent finds these purses in the calling thread.
     *
     * @param expected what {@link Cell#purse} of this thread is
     * @param inherited what {@link Inherited#purse} of this thread is; 0 where it has none
     */
    static native boolean probe(int expected, int inherited);

    /** See {@link Agent#open}. */
    static native int open(Object token, String name, ClassLoader loader);

    /** See {@link Agent#idle}. */
    static native boolean idle(int purse);

    /** See {@link Agent#use}. */
    static native void use(boolean inherited);

    /** See {@link Agent#misuse}. */
    static native void misuse(int kind);

    /**
     * Figures of an account as {@link Bridge#read} describes them, at most a second old.
     *
     * @param account its published name; counts where {@code purse} is 0
     * @param purse a purse of the account, or 0
     * @return null where there is no such account, or no reading within three seconds
     */
    static native long[] read(String account, int purse);

    /** See {@link Agent#current}. */
    static native String current(int purse);

    /**
     * Whether an account is over its limit and refused.
     *
     * @param purse a purse of the account; 0 for the account of the service whose loader has the number
     * @param loader from {@link #number}; 0 for no service
     */
    static native boolean refuses(int purse, int loader);

    /** The number by which the agent knows a loader; 0 if it is nobody's, or there is no room. */
    static native int number(ClassLoader loader);

    /** See {@link Agent#listen}. */
    static native void listen(boolean any);

    /** See {@link Bridge#figures}. */
    static native long[] figures(int purse);

    /** See {@link Bridge#watch}. */
    static native void watch(int purse, boolean on);

    /** See {@link Bridge#classes}. */
    static native Object[] classes(int purse, int most);

    /** See {@link Bridge#settle}. */
    static native boolean settle(long millis);

    /** See {@link Bridge#trace}. */
    static native void trace(int purse, boolean on);

    /** See {@link Bridge#sites}. */
    static native Object[] sites(int purse, String type, int most);

    /** Whether the door of any account is shut. */
    static native boolean anyShut();

    /** The first request has come to the door of a library, by its number. */
    static native void serves(int server);

    /**
     * A request has come to a door.
     *
     * @param route the number of its route; 0 for none
     * @return {@link #anyShut}
     */
    static native boolean came(int route);

    /**
     * The number of a route.
     *
     * @param loader from {@link #number}, of the service's loader
     * @param method the request's method
     * @param path its path, folded
     * @return its number; 0: not yet, ask again at the next request; -1: the service has no routes; less: there
     *     is no room for it, and the number of the route of the rest is -1 less this
     */
    static native int route(int loader, String method, String path);

    /**
     * Asks whether a request may come in.
     *
     * @param loader from {@link #number}, of the service's loader
     * @param route the number of its route; 0 for none
     * @param method the request's method
     * @param path its path inside the application
     * @return 0: let in. More than 0: let in as the probe with this ticket, see {@link #probeEnded}.
     *     Less than 0: turned away; to be tried again in as many milliseconds. Those are less than
     *     {@link Door#TOO_MANY}, which is added where the policy wants 429 instead of 503
     */
    static native long knock(int loader, int route, String method, String path);

    /**
     * The request that was let in with this ticket has ended.
     *
     * @param whole if not it goes on elsewhere, and only its beginning was seen
     */
    static native void probeEnded(int loader, long ticket, boolean whole);

    /**
     * Which account {@link #refuses} means.
     *
     * @return a purse of it; 0 if nobody is refused
     */
    static native int refuser(int purse, int loader);

    /**
     * Asks whether a program may take on new work for an account.
     *
     * @param purse from {@link #refuser}
     * @param method the method of the request
     * @param path its path inside the application
     * @return as {@link #knock}; a ticket is for {@link #askedEnded}
     */
    static native long ask(int purse, String method, String path);

    /** The work that was let in with this ticket has ended. Nothing if it was told before. */
    static native void askedEnded(int purse, long ticket);

    /**
     * Whether work that was let in as a probe has not ended.
     *
     * @param purse from {@link #refuser} or {@link #refuserAt}: the account that it was let in for
     * @param letIn from {@link AskedProbe#mark}
     */
    static native boolean isInside(int purse, int letIn);

    /**
     * Who is over its limit and turns calls away at this door. For the calling thread.
     *
     * @param door the number of a door at a method
     * @return a purse of that account; 0 if nobody does
     */
    static native int refuserAt(int door);

    /**
     * The number of the route of calls through this door. They are counted by {@link #came}.
     *
     * @param door the number of a door at a method
     * @return 0: not yet, ask again at the next call; -1: they have none
     */
    static native int routeAt(int door);

    /**
     * Asks whether the calling thread may enter the method at this door. Throws the account's error if not.
     *
     * @param payer from {@link #refuserAt}
     * @param route the number of the call's route; 0 for none
     * @return 0: let in. More: let in as the probe with this ticket, see {@link #askedEnded}
     */
    static native long enterDoor(int door, int payer, int route);

    /** See {@link Uncaught#ended}: counts and logs the thread if the agent threw this error. */
    static native void threadEnded(Thread thread, Throwable error);
}
