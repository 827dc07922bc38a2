package dev.heapwarden.examples.boot;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.Mask;
import dev.heapwarden.MemoryQuotaExceeded;
import dev.heapwarden.Scope;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Set;

/**
 * Runs a request in the scope of the tenant that its header names, and answers 503 where the tenant
 * is refused memory. What a tenant lets go of memory with is not refused: else it could stay over its
 * limit for ever. Without the header there is no scope: the service pays. A tenant that is not known
 * gets 400: what a client sends never becomes a name by itself.
 */
final class TenantFilter implements Filter {
    private static final String HEADER = "X-Tenant";

    /** The method of the requests that let go of memory. */
    private static final String LETTING_GO = "DELETE";

    /** An account that lets go is admitted again within so many seconds. */
    private static final String RETRY_AFTER_SECONDS = "10";

    /** A chain of causes longer than this is given up. */
    private static final int MAX_CAUSES = 64;

    private final Set<String> tenants;

    TenantFilter(Set<String> tenants) {
        this.tenants = Set.copyOf(tenants);
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        var http = (HttpServletResponse) response;
        var asked = (HttpServletRequest) request;
        String tenant = asked.getHeader(HEADER);
        if (tenant == null) {
            pass(request, http, chain);
        } else if (!tenants.contains(tenant)) {
            http.sendError(HttpServletResponse.SC_BAD_REQUEST);
        } else if (asked.getMethod().equals(LETTING_GO)) {
            try (Mask mask = Heapwarden.mask()) {
                passAs(tenant, request, http, chain);
            }
        } else {
            passAs(tenant, request, http, chain);
        }
    }

    private static void passAs(
            String tenant, ServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        try (Scope scope = Heapwarden.enter(tenant)) {
            pass(request, response, chain);
        }
    }

    /** The service as a whole can be over its limit as well. */
    private static void pass(ServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        try {
            chain.doFilter(request, response);
        } catch (Throwable thrown) {
            if (!isRefusal(thrown) || response.isCommitted()) {
                throw thrown;
            }
            // No page is rendered and nothing logged: there is little memory to do it in.
            response.reset();
            response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
            response.setHeader("Retry-After", RETRY_AFTER_SECONDS);
            response.setContentLength(0);
        }
    }

    /** Whether a refusal is this throwable or one of its causes: Spring wraps what handlers throw. */
    private static boolean isRefusal(Throwable thrown) {
        Throwable current = thrown;
        for (int i = 0; current != null && i < MAX_CAUSES; i++) {
            if (current instanceof MemoryQuotaExceeded) {
                return true;
            }
            current = current.getCause();
        }
        return false;
    }
}
