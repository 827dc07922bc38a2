package guest;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.MemoryQuotaExceededError;
import dev.heapwarden.Scope;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiFunction;

/**
 * A service's code that names tenants, with whatever copy of the API its loader sees. Called with a
 * tenant's name and a list to fill until somebody refuses; says which copy's error it caught.
 */
public final class Guest implements BiFunction<String, List<Object>, String> {
    private static final int PIECE = 64 << 10;

    /** Made by its host. */
    public Guest() {}

    @Override
    public String apply(String tenant, List<Object> held) {
        int pieces = held.size();
        held.clear();
        try (Scope scope = Heapwarden.enter(tenant)) {
            for (int i = 0; i < pieces; i++) {
                held.add(new byte[PIECE]);
                // Some 50 MiB a second: a collection is to show what is held before it is much more.
                if (i % 16 == 0) {
                    LockSupport.parkNanos(20_000_000);
                }
            }
            return "held";
        } catch (MemoryQuotaExceededError refused) {
            ClassLoader own = getClass().getClassLoader();
            boolean copy = refused.getClass().getClassLoader() != null;
            boolean mine =
                    refused.getClass() == MemoryQuotaExceededError.class
                            && (!copy || Heapwarden.class.getClassLoader() == refused.getClass().getClassLoader());
            return "refused " + refused.account() + (mine ? " mine" : " other's")
                    + (copy ? " copy" : " boot")
                    + (refused.getStackTrace().length > 0 ? " traced" : " bare")
                    + (own == null ? " bootguest" : "");
        }
    }
}
