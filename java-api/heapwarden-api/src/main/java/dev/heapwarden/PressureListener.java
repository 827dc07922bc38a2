package dev.heapwarden;

/**
 * Is told when an account nears its limit or passes it, so that a program can shed what it can do
 * without. Registered by {@link Heapwarden#listen(PressureListener)}.
 *
 * @since 0.1
 */
@FunctionalInterface
public interface PressureListener {
    /**
     * Called for each event, one at a time, on a daemon thread of this listener's own, under the
     * context class loader of the registration. Nothing is refused to that thread, within the bounds
     * of {@link Heapwarden#mask()}. A listener that takes long delays only itself; of the events that
     * wait for it meanwhile the oldest are dropped, beyond 64. What it throws is logged.
     *
     * @param pressure the event
     */
    void onPressure(Pressure pressure);
}
