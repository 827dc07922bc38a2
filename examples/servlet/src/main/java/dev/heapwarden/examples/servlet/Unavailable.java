package dev.heapwarden.examples.servlet;

import jakarta.servlet.http.HttpServletResponse;

/** The answer to a refused request. Made once, so that giving it allocates next to nothing. */
final class Unavailable {
    /**
     * Seconds until the client should ask again: an account that lets go is admitted again within
     * ten.
     */
    static final String RETRY_AFTER_SECONDS = "10";

    private final String retryAfterSeconds;

    /**
     * Takes the seconds as text.
     *
     * @throws IllegalArgumentException where the text is no whole number from 0 on
     */
    Unavailable(String retryAfterSeconds) {
        if (Integer.parseInt(retryAfterSeconds) < 0) {
            throw new IllegalArgumentException("negative: " + retryAfterSeconds);
        }
        this.retryAfterSeconds = retryAfterSeconds;
    }

    /**
     * Gives the answer in place of whatever was prepared. No error page: the application's own would
     * be the next to be refused.
     *
     * @return false where part of another answer is on its way already
     */
    boolean answer(HttpServletResponse response) {
        if (response.isCommitted()) {
            return false;
        }
        response.reset();
        response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
        response.setHeader("Retry-After", retryAfterSeconds);
        response.setContentLength(0);
        return true;
    }
}
