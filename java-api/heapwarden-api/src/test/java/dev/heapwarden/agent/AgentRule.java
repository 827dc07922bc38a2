package dev.heapwarden.agent;

/** Shows the agent's rule for names to tests in other packages. */
public final class AgentRule {
    private AgentRule() {}

    /** Returns the fault of a name; null for a good one. */
    public static String fault(String name) {
        return ScopeName.fault(name);
    }
}
