package dev.heapwarden.agent;

/**
 * Notices threads that a refusal ended. The agent inserts a call of {@link #ended} at the entry of {@code
 * Thread.dispatchUncaughtException}, where the JVM and virtual threads bring what nothing has caught.
 */
public final class Uncaught {
    /** The package of the errors, and of their copies in other loaders, which are no subclasses of them. */
    private static final String ERRORS = "dev.heapwarden.";

    private Uncaught() {}

    /**
     * Called on the thread that ends, before its handler. Returns at once for what the agent has not
     * thrown, and never throws: the handler must run.
     *
     * @param thread the thread that ends
     * @param error what nothing has caught
     */
    public static void ended(Thread thread, Throwable error) {
        try {
            if (error.getClass().getName().startsWith(ERRORS)) {
                Natives.threadEnded(thread, error);
            }
        } catch (Throwable ignored) {
            // The thread has an error to report already.
        }
    }
}
