package dev.heapwarden.grpc;

import dev.heapwarden.Admission;
import dev.heapwarden.Heapwarden;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;

/**
 * Ends a call with {@code UNAVAILABLE} while the account of the calling thread is over its limit, before
 * its method runs. The trailers say when to retry, in {@code grpc-retry-pushback-ms}: clients with a retry
 * policy do. One call at a time goes in all the same, as a probe, until it is closed, complete or cancelled. The method
 * and its listener have the {@linkplain Admission allowance} of a probe, on whatever threads gRPC calls them.
 *
 * <p>The account is that of the open scope or, outside of all scopes, that of the context class loader of
 * the thread that gRPC calls interceptors on: one of the server's executor. gRPC runs the <em>last</em>
 * interceptor that was added first. To ask for a tenant, add this one before the one that opens the
 * tenant's scope around {@code startCall}. For a policy's {@code admit} a call is a {@code POST} to {@code
 * /package.Service/Method}.
 *
 * <p>Thread-safe; one can serve many servers. Without the agent, and in mode {@code observe}, every call
 * goes in.
 *
 * @since 0.1
 */
public final class AdmissionInterceptor implements ServerInterceptor {
    /** When a client that retries is to do so, in milliseconds. */
    private static final Metadata.Key<String> PUSHBACK =
            Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);

    /** To be added to a server, or to a single service. */
    public AdmissionInterceptor() {}

    @Override
    public <Q, A> ServerCall.Listener<Q> interceptCall(
            ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
        if (Heapwarden.admits()) {
            return next.startCall(call, headers);
        }
        String path = "/" + call.getMethodDescriptor().getFullMethodName();
        Admission admission = Heapwarden.admission("POST", path);
        if (!admission.isGranted()) {
            turnAway(call, admission);
            return new Nothing<>();
        }
        return admission.isProbe()
                ? new Probe(admission).start(call, headers, next)
                : next.startCall(call, headers);
    }

    private static void turnAway(ServerCall<?, ?> call, Admission admission) {
        Metadata trailers = new Metadata();
        trailers.put(PUSHBACK, Long.toString(admission.retryAfterMillis()));
        call.close(Status.UNAVAILABLE.withDescription(admission.message()), trailers);
    }

    /** Of a call that was turned away: what its client still sends is dropped. */
    private static final class Nothing<Q> extends ServerCall.Listener<Q> {}
}
