package dev.heapwarden.examples.servlet;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/**
 * Answers 503 with {@code Retry-After} where a request was refused memory, whichever {@code throw}
 * the policy has and however deep the error is wrapped. Everything else passes unchanged, and so
 * does a refusal after part of the answer was sent.
 *
 * <p>Should be the first filter. Sees what is thrown through it: not what the application catches
 * itself, nor what is thrown on threads of its own.
 *
 * <p>Init parameter {@code retry-after-seconds}: 10 unless told.
 */
public final class MemoryQuotaFilter implements Filter {
    private Unavailable unavailable = new Unavailable(Unavailable.RETRY_AFTER_SECONDS);

    /** For the container. */
    public MemoryQuotaFilter() {}

    @Override
    public void init(FilterConfig config) throws ServletException {
        String seconds = config.getInitParameter("retry-after-seconds");
        if (seconds == null) {
            return;
        }
        try {
            unavailable = new Unavailable(seconds);
        } catch (IllegalArgumentException e) {
            throw new ServletException("retry-after-seconds is no number of seconds: " + seconds, e);
        }
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        try {
            chain.doFilter(request, response);
        } catch (Throwable thrown) {
            if (!Refusals.caused(thrown)
                    || !(response instanceof HttpServletResponse)
                    || !unavailable.answer((HttpServletResponse) response)) {
                throw thrown;
            }
        }
    }
}
