package dev.heapwarden;

/**
 * The refusal as an {@code Error} that is no {@link VirtualMachineError}: {@code throw = "error"}.
 *
 * <p>Code that catches {@code Exception} does not swallow it, and frameworks do not take it for a
 * dying JVM.
 */
public final class AllocationRefusedError extends Error implements MemoryQuotaExceeded {
    private static final long serialVersionUID = 1;

    /** The account's name; null in the instance that the agent made beforehand. */
    private final String account;

    /** See {@link #liveBytes()}. */
    private final long liveBytes;

    /** See {@link #limitBytes()}. */
    private final long limitBytes;

    /** See {@link #standardErrorBytes()}. */
    private final long standardErrorBytes;

    /** See {@link #requestedBytes()}. */
    private final long requestedBytes;

    /**
     * Made by the agent on the refused thread.
     *
     * @param account name of the account that is over its limit
     * @param liveBytes bytes that it held after the latest collection
     * @param limitBytes its limit in bytes
     * @param standardErrorBytes standard error of {@code liveBytes}
     * @param requestedBytes size of the object that was refused
     */
    public AllocationRefusedError(
            String account,
            long liveBytes,
            long limitBytes,
            long standardErrorBytes,
            long requestedBytes) {
        this.account = account;
        this.liveBytes = liveBytes;
        this.limitBytes = limitBytes;
        this.standardErrorBytes = standardErrorBytes;
        this.requestedBytes = requestedBytes;
    }

    @Override
    public String account() {
        return account == null ? "" : account;
    }

    @Override
    public long liveBytes() {
        return liveBytes;
    }

    @Override
    public long limitBytes() {
        return limitBytes;
    }

    @Override
    public long standardErrorBytes() {
        return standardErrorBytes;
    }

    @Override
    public long requestedBytes() {
        return requestedBytes;
    }

    /** The account and all figures. Built at each call, so that making the error costs little. */
    @Override
    public String getMessage() {
        return QuotaMessage.of(this);
    }
}
