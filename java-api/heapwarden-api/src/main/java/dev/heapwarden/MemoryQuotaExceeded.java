package dev.heapwarden;

/**
 * An allocation was refused because the account that pays for it is over its memory limit.
 *
 * <p>What every error of a refusal has in common, whichever the policy's {@code throw} asks for:
 * {@link MemoryQuotaExceededError} ({@code "oom"}, the default), {@link AllocationRefusedError}
 * ({@code "error"}) and {@link MemoryQuotaExceededException} ({@code "exception"}). The JVM is not
 * out of memory: the account's other threads are refused too, its neighbours are not, and what the
 * account lets go admits it again.
 *
 * <p>The figures are estimates from a sample of all allocations, as of the verdict. Where the heap or
 * the stack had no room to make an error, the agent throws one made beforehand: it has no stack
 * trace, its account is empty and its figures are 0.
 */
public interface MemoryQuotaExceeded {
    /**
     * Name of the account that is over its limit.
     *
     * @return the name; empty where the error was made beforehand
     */
    String account();

    /**
     * Bytes that the account held after the latest collection.
     *
     * @return bytes; 0 where the error was made beforehand
     */
    long liveBytes();

    /**
     * The account's limit.
     *
     * @return bytes; 0 where the error was made beforehand
     */
    long limitBytes();

    /**
     * Standard error of {@link #liveBytes()}: two out of three estimates are within one of the
     * truth.
     *
     * @return bytes; 0 where every allocation is counted, or the error was made beforehand
     */
    long standardErrorBytes();

    /**
     * Size of the object that was refused.
     *
     * @return bytes; 0 where the error was made beforehand, and where a call was turned away at a
     *     method that the policy names as a door
     */
    long requestedBytes();
}
