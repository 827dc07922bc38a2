package dev.heapwarden.servlet.javax;

import dev.heapwarden.Admission;
import dev.heapwarden.Heapwarden;
import dev.heapwarden.Scope;
import javax.servlet.AsyncEvent;
import javax.servlet.AsyncListener;
import javax.servlet.DispatcherType;
import javax.servlet.Filter;
import javax.servlet.FilterChain;
import javax.servlet.FilterConfig;
import javax.servlet.ServletException;
import javax.servlet.ServletRequest;
import javax.servlet.ServletResponse;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * Answers 503 with {@code Retry-After} while the account of the calling thread is over its limit, before
 * the rest of the filter chain runs. One request at a time goes in all the same, as a probe.
 *
 * <p>The account is that of the open scope or, outside of all scopes, that of the web application. It
 * belongs first in the chain; {@link AdmissionInitializer} puts it there. Where a filter opens a scope for
 * each tenant, it belongs behind that one, to ask for the tenant too. It has no parameters. Requests only
 * are asked: no forward, include, error page or asynchronous dispatch of one. Two of it in one chain do no
 * harm.
 *
 * <p>Thread-safe. Without the agent, and in mode {@code observe}, every request goes in.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // The annotations of nullness: who uses this need not have them.
public final class AdmissionFilter implements Filter {
    /** Set on a request that is inside as a probe: no further filter of this kind asks. */
    private static final String PROBE = "dev.heapwarden.probe";

    private static final int UNAVAILABLE = 503;

    /** Called by the container, or by whoever registers the filter. */
    public AdmissionFilter() {}

    @Override
    public void init(FilterConfig config) {}

    @Override
    public void destroy() {}

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (Heapwarden.admits()
                || request.getDispatcherType() != DispatcherType.REQUEST
                || !(request instanceof HttpServletRequest)
                || !(response instanceof HttpServletResponse)
                || request.getAttribute(PROBE) != null) {
            chain.doFilter(request, response);
            return;
        }
        HttpServletRequest asking = (HttpServletRequest) request;
        Admission admission = Heapwarden.admission(known(asking.getMethod()), path(asking));
        if (!admission.isGranted()) {
            turnAway((HttpServletResponse) response, admission);
        } else if (admission.isProbe()) {
            probe(asking, response, chain, admission);
        } else {
            chain.doFilter(request, response);
        }
    }

    /** Runs the chain, and says that the probe has ended when the request has. */
    private static void probe(
            HttpServletRequest request,
            ServletResponse response,
            FilterChain chain,
            Admission admission)
            throws IOException, ServletException {
        boolean goesOn = false;
        request.setAttribute(PROBE, Boolean.TRUE);
        try {
            Scope inside = admission.enter();
            try {
                chain.doFilter(request, response);
            } finally {
                inside.close();
            }
            goesOn = request.isAsyncStarted() && endsWith(request, admission);
        } finally {
            if (!goesOn) {
                request.removeAttribute(PROBE);
                admission.close();
            }
        }
    }

    /** Closes the admission when the asynchronous request ends; false if it has ended already. */
    private static boolean endsWith(HttpServletRequest request, Admission admission) {
        try {
            request.getAsyncContext().addListener(new End(admission));
            return true;
        } catch (IllegalStateException ended) {
            return false;
        }
    }

    private static void turnAway(HttpServletResponse response, Admission admission) {
        byte[] body = (admission.message() + "\n").getBytes(StandardCharsets.US_ASCII);
        try {
            // Not by `sendError`, which would run an error page of the application.
            response.setStatus(UNAVAILABLE);
            response.setHeader("Retry-After", Long.toString(admission.retryAfterSeconds()));
            response.setContentType("text/plain");
            response.setContentLength(body.length);
            response.getOutputStream().write(body);
        } catch (IOException | IllegalStateException gone) {
            // The client is gone, or another filter has written. The request stays outside.
        }
    }

    /** The path inside the application. */
    private static String path(HttpServletRequest request) {
        String servlet = request.getServletPath();
        String rest = request.getPathInfo();
        String path = rest == null ? known(servlet) : known(servlet) + rest;
        return path.isEmpty() ? "/" : path;
    }

    private static String known(@Nullable String text) {
        return text == null ? "" : text;
    }

    /** The end of an asynchronous request. Told again if it is started again, which does no harm. */
    private static final class End implements AsyncListener {
        private final Admission admission;

        End(Admission admission) {
            this.admission = admission;
        }

        @Override
        public void onComplete(AsyncEvent event) {
            admission.close();
        }

        @Override
        public void onTimeout(AsyncEvent event) {
            // The request is completed next.
        }

        @Override
        public void onError(AsyncEvent event) {
            // The request is completed next.
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
            // Listeners are dropped when a dispatched request is started again.
            event.getAsyncContext().addListener(this);
        }
    }
}
