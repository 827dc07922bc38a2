package victim.invariants;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;

/** The rows by name. */
public final class Rows {
    private static final Map<String, Callable<Row>> ROWS = new HashMap<>();

    static {
        Loading.addTo(ROWS);
        Tasks.addTo(ROWS);
        Locking.addTo(ROWS);
        Maps.addTo(ROWS);
        Handlers.addTo(ROWS);
        Cleanup.addTo(ROWS);
    }

    private Rows() {}

    public static Row named(String name) throws Exception {
        return ROWS.get(name).call();
    }

    /** Waits, at most a minute. */
    static void until(Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!holds.call() && System.nanoTime() < end) {
            Thread.sleep(1);
        }
    }
}
