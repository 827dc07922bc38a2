package dev.heapwarden;

import java.util.OptionalLong;

/**
 * An account passed one of its limits, or fell below it again. Immutable.
 *
 * @since 0.1
 */
public final class Pressure {
    /** The kind of an event. */
    public enum Kind {
        /** The account passed its soft limit. Nothing is refused. */
        SOFT_LIMIT,
        /** The account is over its limit: what it allocates is refused, or would be. */
        OVER_LIMIT,
        /** The account is no longer over its limit. */
        RECOVERED,
        /** The account is below its soft limit again. */
        SOFT_RECOVERED
    }

    private static final Kind[] KINDS = Kind.values();

    private final String account;
    private final Kind kind;
    private final long liveBytes;
    private final long chargedBytes;
    private final long standardErrorBytes;
    private final long softLimitBytes;
    private final long limitBytes;

    /** Figures in the order of the fields, -1 for no limit. */
    Pressure(String account, int kind, long[] figures) {
        this.account = account;
        this.kind = KINDS[kind];
        this.liveBytes = figures[0];
        this.chargedBytes = figures[1];
        this.standardErrorBytes = figures[2];
        this.softLimitBytes = figures[3];
        this.limitBytes = figures[4];
    }

    /** An event of a kind that a later agent may have, and this API does not. */
    static boolean known(int kind) {
        return kind >= 0 && kind < KINDS.length;
    }

    /**
     * The account, which may be one beneath the account listened to.
     *
     * @return its published name
     */
    public String account() {
        return account;
    }

    /**
     * Returns the kind of this event.
     *
     * @return the kind of event
     */
    public Kind kind() {
        return kind;
    }

    /**
     * Returns the bytes that the account held after the latest collection.
     *
     * @return bytes
     */
    public long liveBytes() {
        return liveBytes;
    }

    /**
     * Returns the charge of the account: its live bytes, and garbage that no collection has found yet.
     *
     * @return bytes
     */
    public long chargedBytes() {
        return chargedBytes;
    }

    /**
     * Standard error of the figures: two out of three estimates are within one of the truth.
     *
     * @return bytes; 0 where every allocation is counted
     */
    public long standardErrorBytes() {
        return standardErrorBytes;
    }

    /**
     * The soft limit at the time.
     *
     * @return bytes; empty where there is none
     */
    public OptionalLong softLimitBytes() {
        return softLimitBytes < 0 ? OptionalLong.empty() : OptionalLong.of(softLimitBytes);
    }

    /**
     * The limit at the time.
     *
     * @return bytes; empty where there is none
     */
    public OptionalLong limitBytes() {
        return limitBytes < 0 ? OptionalLong.empty() : OptionalLong.of(limitBytes);
    }

    @Override
    public String toString() {
        return kind + " of account \"" + account + "\": live " + liveBytes + " bytes, charged "
                + chargedBytes + ", standard error " + standardErrorBytes;
    }
}
