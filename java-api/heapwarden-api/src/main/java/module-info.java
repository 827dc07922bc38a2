/**
 * Scopes for the tenants of a program, whose heap memory the agent Heapwarden accounts for and
 * limits. Without the agent everything here does nothing.
 */
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // Those that the internal package is exported to are built after this one.
module dev.heapwarden {
    requires static org.jspecify;

    exports dev.heapwarden;
    exports dev.heapwarden.internal to
            dev.heapwarden.junit,
            dev.heapwarden.micrometer;
}
