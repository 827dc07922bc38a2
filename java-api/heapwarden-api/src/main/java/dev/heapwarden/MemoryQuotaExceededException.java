package dev.heapwarden;

/**
 * The refusal as an unchecked exception: {@code throw = "exception"}.
 *
 * <p>For code that is prepared for exceptions and not for errors; {@code catch (Exception e)} catches
 * it, wherever that stands.
 */
public final class MemoryQuotaExceededException extends RuntimeException implements MemoryQuotaExceeded {
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
    public MemoryQuotaExceededException(
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
