package dev.heapwarden.agent;

/**
 * The result of {@link Bridge#capture} on a thread that is in work which was let in as a probe: the scope, and that the
 * work is let in. Immutable.
 */
final class Inside {
    /** The scope; null for none. Keeps its purse alive. */
    final Context context;

    /** {@link AskedProbe#mark} of the work. */
    final int letIn;

    Inside(Context context, int letIn) {
        this.context = context;
        this.letIn = letIn;
    }

    /** Whether it is the same scope in the same work: each {@link Bridge#capture} makes an object. */
    @Override
    public boolean equals(Object other) {
        return other instanceof Inside
                && ((Inside) other).context == context
                && ((Inside) other).letIn == letIn;
    }

    @Override
    public int hashCode() {
        return letIn;
    }
}
