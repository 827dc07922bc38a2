package dev.heapwarden.spring;

import dev.heapwarden.Admission;
import dev.heapwarden.Heapwarden;
import java.nio.charset.StandardCharsets;
import org.springframework.core.Ordered;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;

/**
 * Answers 503 with {@code Retry-After} while the account of the calling thread is over its limit, before
 * the rest of the chain runs. One request at a time goes in all the same, as a probe, until its response
 * is complete or cancelled.
 *
 * <p>The account is that of the open scope or, outside of all scopes, that of the context class loader of
 * the server's thread. Never waits. Thread-safe. Without the agent, and in mode {@code observe}, every
 * request goes in.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // Spring's types: an application requires their modules itself.
public final class AdmissionWebFilter implements WebFilter, Ordered {
    /** Set on a request that is inside as a probe: no further filter of this kind asks. */
    private static final String PROBE = "dev.heapwarden.probe";

    private final int order;

    /**
     * A filter.
     *
     * @param order its place among others, the lowest first
     */
    public AdmissionWebFilter(int order) {
        this.order = order;
    }

    @Override
    public int getOrder() {
        return order;
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        if (Heapwarden.admits() || exchange.getAttribute(PROBE) != null) {
            return chain.filter(exchange);
        }
        ServerHttpRequest request = exchange.getRequest();
        String path = request.getPath().pathWithinApplication().value();
        Admission admission = Heapwarden.admission(request.getMethod().name(), path);
        if (!admission.isGranted()) {
            return turnAway(exchange.getResponse(), admission);
        }
        if (!admission.isProbe()) {
            return chain.filter(exchange);
        }
        exchange.getAttributes().put(PROBE, Boolean.TRUE);
        return Mono.using(() -> admission, inside -> chain.filter(exchange), Admission::close);
    }

    private static Mono<Void> turnAway(ServerHttpResponse response, Admission admission) {
        byte[] body = (admission.message() + "\n").getBytes(StandardCharsets.US_ASCII);
        response.setStatusCode(HttpStatus.SERVICE_UNAVAILABLE);
        HttpHeaders headers = response.getHeaders();
        headers.set(HttpHeaders.RETRY_AFTER, Long.toString(admission.retryAfterSeconds()));
        headers.setContentType(MediaType.TEXT_PLAIN);
        headers.setContentLength(body.length);
        DataBuffer buffer = response.bufferFactory().wrap(body);
        return response.writeWith(Mono.just(buffer));
    }
}
