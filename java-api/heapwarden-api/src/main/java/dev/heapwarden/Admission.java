package dev.heapwarden;

import dev.heapwarden.internal.Link;
import org.jspecify.annotations.Nullable;

/**
 * The answer to a program that asked whether to take on new work: let in, let in as a probe, or turned
 * away. Made by {@link Heapwarden#admission(String, String)}, for {@code try} with resources.
 *
 * <p>While an account is over its limit, one piece of work at a time is let in as a <em>probe</em>, with
 * pauses of 0.1 to 6.4 seconds in between: otherwise nothing could let memory go. The next one comes in
 * after the probe was closed, or half a minute after it began.
 *
 * <p>A probe has an allowance: it is not refused by errors before it has allocated a megabyte, or a part of the limit if
 * that is more. All threads together have it that are inside: the one that asked, until the scope is closed that it
 * asked in; each that {@linkplain #enter enters}; and each that runs a task which was {@linkplain
 * Heapwarden#wrap(Runnable) wrapped} inside. It ends when the admission is closed.
 *
 * <p>Thread-safe: work that begins on one thread may be closed on another.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // The annotations of nullness: who uses this need not have them.
public final class Admission implements AutoCloseable {
    private static final long SECOND_MILLIS = 1_000;

    /** Shared: nothing is allocated while no account is over its limit. */
    private static final Admission GRANTED = new Admission(null, 0);

    /** Tells the agent that the probe has ended; null if this is no probe. */
    private final @Nullable Runnable end;

    /** 0 if it is let in. */
    private final long retryAfterMillis;

    private Admission(@Nullable Runnable end, long retryAfterMillis) {
        this.end = end;
        this.retryAfterMillis = retryAfterMillis;
    }

    /** From what the agent answered: null, the end of a probe, or milliseconds. */
    static Admission of(@Nullable Object answer) {
        if (answer instanceof Runnable) {
            return new Admission((Runnable) answer, 0);
        }
        return answer instanceof Long ? new Admission(null, (Long) answer) : GRANTED;
    }

    /**
     * Whether the work may begin.
     *
     * @return false if it is to be turned away
     */
    public boolean isGranted() {
        return retryAfterMillis == 0;
    }

    /**
     * Whether the work is let in although the account is over its limit. Then {@link #close} is due when
     * it has ended.
     *
     * @return true for a probe
     */
    public boolean isProbe() {
        return end != null;
    }

    /**
     * The calling thread does this work until what is returned is closed: it shares the allowance of a probe. The
     * scope that the thread is in stays as it is. Each thread enters by itself; one that asked in an open scope need
     * not. Nothing happens if this is no probe.
     *
     * @return to be closed on this thread, for {@code try} with resources
     */
    public Scope enter() {
        return new Scope(end == null ? 0 : Link.inside(end));
    }

    /**
     * When work that is turned away may be tried again.
     *
     * @return milliseconds, at least 1,000; 0 if it is let in
     */
    public long retryAfterMillis() {
        return retryAfterMillis;
    }

    /**
     * The value of an HTTP header {@code Retry-After}.
     *
     * @return seconds, at least 1; 0 if it is let in
     */
    public long retryAfterSeconds() {
        return (retryAfterMillis + SECOND_MILLIS - 1) / SECOND_MILLIS;
    }

    /**
     * Returns the answer of the agent's own door, for clients.
     *
     * @return one sentence or two, without a line break; empty if it is let in
     */
    public String message() {
        return isGranted()
                ? ""
                : "This service is over its memory limit. Try again in "
                        + retryAfterSeconds()
                        + " s.";
    }

    /** Says that the work has ended. Needed for a probe; otherwise, and a second time, nothing happens. */
    @Override
    public void close() {
        if (end != null) {
            end.run();
        }
    }
}
