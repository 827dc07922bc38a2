package dev.heapwarden.agent;

import java.lang.ref.WeakReference;

/**
 * A scope's identity: the service it was entered in, and its name. Its life is the life of its purse:
 * the agent notes the death of this object.
 *
 * <p>It does not hold the service's loader.
 */
public final class Context {
    /** No scope at all: what a task runs in that was wrapped outside of every scope. */
    static final Context NONE = new Context();

    /** The purse that pays; 0 for none. */
    final int purse;

    /** The name, as entered or {@link Names#OTHER}. */
    final String name;

    /** Inherited by the threads that are started in this scope. */
    final Inherited inherited;

    /** For those who remember this context without keeping its purse alive. */
    final WeakReference<Context> weakly;

    /** Entered since the latest sweep of {@link Names}. Racy: a lost mark costs a second purse. */
    boolean entered;

    /**
     * Opens a purse, which {@link #purse} says.
     *
     * @param loader the service's loader; null for no service
     */
    Context(Agent agent, String name, ClassLoader loader) {
        this.name = name;
        this.purse = agent.open(this, name, loader);
        this.inherited = new Inherited(this.purse, this);
        this.weakly = new WeakReference<>(this);
    }

    private Context() {
        this.name = "";
        this.purse = 0;
        this.inherited = new Inherited(0, this);
        this.weakly = new WeakReference<>(this);
    }
}
