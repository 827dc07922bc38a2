package dev.heapwarden.agent;

import java.lang.ref.WeakReference;
import java.util.Iterator;
import java.util.concurrent.ConcurrentHashMap;

/** The contexts of one service, by name. Thread-safe; a look-up takes no lock. */
final class Names {
    /** The name under which those run that find no room. */
    static final String OTHER = "_other";

    /** Names of one service at the most, {@link #OTHER} not counted. */
    static final int MAX = 10_000;

    private static final long SECOND_NANOS = 1_000_000_000L;

    private final Agent agent;
    private final int most;
    private final ConcurrentHashMap<String, Context> contexts = new ConcurrentHashMap<>();

    /** To be guarded by this. */
    private Context other;
    private long fullSince;
    private boolean full;

    /** Refers to the service's loader; for no service, to null. */
    final WeakReference<ClassLoader> loader;

    /** For those who remember this without keeping its purses alive. */
    final WeakReference<Names> weakly;

    Names(Agent agent, WeakReference<ClassLoader> loader, int most) {
        this.agent = agent;
        this.loader = loader;
        this.most = most;
        this.weakly = new WeakReference<>(this);
    }

    /** The context of this name, if it has been made. */
    Context known(String name) {
        return contexts.get(name);
    }

    /**
     * The context of this name, made if there is room, else {@link #OTHER}'s.
     *
     * @param now {@link System#nanoTime}: where there was no room, it is looked for anew after a
     *     second
     */
    synchronized Context make(String name, long now) {
        Context context = contexts.get(name);
        if (context != null) {
            return context;
        }
        if (full && now - fullSince < SECOND_NANOS) {
            return other();
        }
        full = contexts.size() >= most && !sweep();
        if (!full) {
            context = new Context(agent, name, loader.get());
            if (context.purse != 0) {
                // A mark from birth: else a sweep between here and the entry would drop it.
                context.entered = true;
                contexts.put(name, context);
                return context;
            }
            full = true;
        }
        fullSince = now;
        return other();
    }

    /** How many names there are. */
    int size() {
        return contexts.size();
    }

    private Context other() {
        if (other == null || other.purse == 0) {
            other = new Context(agent, OTHER, loader.get());
        }
        return other;
    }

    /**
     * Drops the contexts that hold nothing and were not entered since the sweep before. A thread that
     * is in one keeps it, and its purse, until it leaves.
     *
     * @return whether there is room now
     */
    private boolean sweep() {
        for (Iterator<Context> all = contexts.values().iterator(); all.hasNext(); ) {
            Context context = all.next();
            if (context.entered) {
                context.entered = false;
            } else if (agent.idle(context.purse)) {
                all.remove();
            }
        }
        return contexts.size() < most;
    }
}
