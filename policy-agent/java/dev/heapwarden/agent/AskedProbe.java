package dev.heapwarden.agent;

/**
 * The end of work that was let in as a probe, for the program that asked. To be run when the work has
 * ended; a second time does nothing. Thread-safe.
 */
final class AskedProbe implements Runnable {
    private final int purse;
    private final long ticket;

    AskedProbe(int purse, long ticket) {
        this.purse = purse;
        this.ticket = ticket;
    }

    @Override
    public void run() {
        Natives.askedEnded(purse, ticket);
    }
}
