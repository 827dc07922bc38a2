package dev.heapwarden.agent;

/**
 * The scope that a thread inherits from the one that made it. Immutable. Its only place among the values of
 * thread-locals is {@link Cells#INHERITED}: the agent looks for the class.
 */
public final class Inherited {
    /** The purse of {@link #context}; read by the agent where the thread has no {@link Cell}. */
    final int purse;

    /** Keeps the purse alive. */
    final Context context;

    Inherited(int purse, Context context) {
        this.purse = purse;
        this.context = context;
    }
}
