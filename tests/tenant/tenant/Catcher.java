package tenant;

import dev.heapwarden.AllocationRefusedError;
import dev.heapwarden.MemoryQuotaExceededError;
import dev.heapwarden.MemoryQuotaExceededException;
import java.util.function.Function;

/** A service that catches each error of a refusal by its own name. */
public final class Catcher implements Function<Throwable, String> {
    @Override
    public String apply(Throwable refusal) {
        try {
            throw refusal;
        } catch (MemoryQuotaExceededError e) {
            return "oom " + e.account();
        } catch (AllocationRefusedError e) {
            return "error " + e.account();
        } catch (MemoryQuotaExceededException e) {
            return "exception " + e.account();
        } catch (Throwable other) {
            return "missed " + other.getClass();
        }
    }
}
