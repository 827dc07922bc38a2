package dev.heapwarden.agent;

/**
 * Work that was let in as a probe, for the program that asked: it ends the work when it is run. A second time
 * does nothing. Thread-safe.
 */
final class AskedProbe implements Runnable {
    private final int purse;
    private final long ticket;

    /** For {@link MethodDoor}: {@link Cell#letIn} of the calling thread before the call. */
    final int before;

    AskedProbe(int purse, long ticket, int before) {
        this.purse = purse;
        this.ticket = ticket;
        this.before = before;
    }

    /** Returns the value of {@link Cell#letIn} on threads of this work: less than 0, and the end of the ticket. */
    int mark() {
        return (int) ticket | Integer.MIN_VALUE;
    }

    @Override
    public void run() {
        Natives.askedEnded(purse, ticket);
    }
}
