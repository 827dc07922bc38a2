package dev.heapwarden.agent;

/** The agent's functions that the classes here call. The real one is {@link NativeAgent}. */
interface Agent {
    /**
     * Opens a purse.
     *
     * @param token the object whose death ends the purse
     * @param name the scope's name
     * @param loader the service's loader; null for no service
     * @return its number, from 1; 0 where there is no room
     */
    int open(Object token, String name, ClassLoader loader);

    /** Whether nothing is charged to the purse now. A look at one counter, no scan. */
    boolean idle(int purse);

    /** Threads may have a {@link Cell}, or an {@link Inherited}, from now on. Idempotent. */
    void use(boolean inherited);

    /** Counts a misuse, by the kinds of {@link Misuse}. */
    void misuse(int kind);

    /** The published name of the account that pays for what the calling thread allocates. */
    String current(int purse);

    /** Whether anybody listens: the agent calls {@link Bridge#announce} as long as that is so. */
    void listen(boolean any);
}
