package dev.heapwarden;

import java.util.Arrays;
import java.util.OptionalLong;

/**
 * The figures of one account at one time. Immutable. All but limits and counts of refusals are
 * estimates from a sample of all allocations, unless the policy has {@code interval = "exact"}.
 *
 * @since 0.1
 */
public final class AccountReading {
    /** Where an account stands with its limit. */
    public enum State {
        /** Not over its limit, as far as is known. */
        OPEN,
        /** More is charged than the limit allows; a collection will show how much of it is held. */
        SUSPECT,
        /** It holds more than its limit: what it allocates is refused, or would be. */
        OVER
    }

    /** How many figures there are. */
    static final int FIGURES = 16;

    private static final State[] STATES = State.values();

    private final String account;
    private final long[] figures;

    /** Figures in the order of the agent's {@code Bridge.read}. */
    AccountReading(String account, long[] figures) {
        this.account = account;
        this.figures = Arrays.copyOf(figures, FIGURES);
    }

    /**
     * The account.
     *
     * @return its published name
     */
    public String account() {
        return account;
    }

    /**
     * Returns the bytes that the account held after the latest collection.
     *
     * @return bytes
     */
    public long liveBytes() {
        return figures[0];
    }

    /**
     * Standard error of {@link #liveBytes()}: two out of three estimates are within one of the truth.
     *
     * @return bytes; 0 where every allocation is counted
     */
    public long liveStandardErrorBytes() {
        return figures[14];
    }

    /**
     * Returns the charge of the account: its live bytes, and garbage that no collection has found yet.
     *
     * @return bytes
     */
    public long chargedBytes() {
        return figures[1];
    }

    /**
     * Standard error of {@link #chargedBytes()}: two out of three estimates are within one of the
     * truth.
     *
     * @return bytes; 0 where every allocation is counted
     */
    public long standardErrorBytes() {
        return figures[2];
    }

    /**
     * How many objects the account held after the latest collection.
     *
     * @return objects
     */
    public long liveObjects() {
        return figures[3];
    }

    /**
     * The soft limit.
     *
     * @return bytes; empty where there is none
     */
    public OptionalLong softLimitBytes() {
        return limit(figures[4]);
    }

    /**
     * The limit.
     *
     * @return bytes; empty where there is none
     */
    public OptionalLong limitBytes() {
        return limit(figures[5]);
    }

    /**
     * Where the account stands with its limit.
     *
     * @return the state
     */
    public State state() {
        return STATES[(int) Math.max(0, Math.min(figures[6], STATES.length - 1))];
    }

    /**
     * Refusals so far.
     *
     * @return how many allocations were refused
     */
    public long refusals() {
        return figures[7];
    }

    /**
     * Refusals that were due so far and were not thrown, because the policy only observes.
     *
     * @return how many
     */
    public long wouldRefuse() {
        return figures[8];
    }

    /**
     * Returns the bytes that the account has allocated so far, freed or not.
     *
     * @return bytes
     */
    public long allocatedBytes() {
        return figures[9];
    }

    /**
     * How many objects the account has allocated so far, freed or not.
     *
     * @return objects
     */
    public long allocatedObjects() {
        return figures[10];
    }

    /**
     * {@link #liveBytes()} with those of the accounts beneath: of a service, with its scopes.
     *
     * @return bytes
     */
    public long treeLiveBytes() {
        return figures[11];
    }

    /**
     * Standard error of {@link #treeLiveBytes()}.
     *
     * @return bytes; 0 where every allocation is counted
     */
    public long treeLiveStandardErrorBytes() {
        return figures[15];
    }

    /**
     * {@link #chargedBytes()} with those of the accounts beneath. What limits are held against.
     *
     * @return bytes
     */
    public long treeChargedBytes() {
        return figures[12];
    }

    /**
     * Standard error of {@link #treeChargedBytes()}.
     *
     * @return bytes; 0 where every allocation is counted
     */
    public long treeStandardErrorBytes() {
        return figures[13];
    }

    private static OptionalLong limit(long bytes) {
        return bytes < 0 ? OptionalLong.empty() : OptionalLong.of(bytes);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof AccountReading
                && account.equals(((AccountReading) other).account)
                && Arrays.equals(figures, ((AccountReading) other).figures);
    }

    @Override
    public int hashCode() {
        return 31 * account.hashCode() + Arrays.hashCode(figures);
    }

    @Override
    public String toString() {
        return "account \"" + account + "\": live " + liveBytes() + " bytes, standard error "
                + liveStandardErrorBytes() + ", charged " + chargedBytes() + ", standard error "
                + standardErrorBytes() + ", " + state();
    }
}
