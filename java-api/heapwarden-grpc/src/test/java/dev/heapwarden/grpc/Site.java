package dev.heapwarden.grpc;

import com.acme.shop.Shelf;
import dev.heapwarden.Heapwarden;
import dev.heapwarden.Scope;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A gRPC server whose tenants are scopes, named in a header, and a client of it. */
final class Site implements AutoCloseable {
    private static final Metadata.Key<String> TENANT =
            Metadata.Key.of("tenant", Metadata.ASCII_STRING_MARSHALLER);
    private static final Metadata.Key<String> ORDER =
            Metadata.Key.of("order", Metadata.ASCII_STRING_MARSHALLER);

    /** As an application's: what is turned away is tried again, when the server says. */
    private static final Map<String, ?> RETRIES =
            Map.of(
                    "methodConfig",
                    List.of(
                            Map.of(
                                    "name",
                                    List.of(Map.of()),
                                    "retryPolicy",
                                    Map.of(
                                            "maxAttempts",
                                            5.0,
                                            "initialBackoff",
                                            "0.001s",
                                            "maxBackoff",
                                            "0.001s",
                                            "backoffMultiplier",
                                            1.0,
                                            "retryableStatusCodes",
                                            List.of("UNAVAILABLE")))));

    final List<byte[]> held = Collections.synchronizedList(new ArrayList<>());
    final AtomicInteger served = new AtomicInteger();

    /** Calls of {@code wait} that are inside. */
    final BlockingQueue<StreamObserver<String>> waiting = new LinkedBlockingQueue<>();

    private final MethodDescriptor<String, String> method =
            MethodDescriptor.<String, String>newBuilder()
                    .setType(MethodDescriptor.MethodType.UNARY)
                    .setFullMethodName("shop.Shelf/Do")
                    .setRequestMarshaller(new Text())
                    .setResponseMarshaller(new Text())
                    .build();
    private final Server server;
    private final ManagedChannel channel;
    private final ManagedChannel retrying;

    Site() throws IOException {
        ServerServiceDefinition service =
                ServerServiceDefinition.builder("shop.Shelf")
                        .addMethod(method, ServerCalls.asyncUnaryCall(this::serve))
                        .build();
        server =
                NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
                        .addService(service)
                        .intercept(new AdmissionInterceptor())
                        .intercept(new Tenants())
                        .build()
                        .start();
        channel = builder().build();
        retrying = builder().enableRetry().defaultServiceConfig(RETRIES).build();
    }

    private NettyChannelBuilder builder() {
        return NettyChannelBuilder.forAddress("127.0.0.1", server.getPort()).usePlaintext();
    }

    private void serve(String order, StreamObserver<String> answer) {
        served.incrementAndGet();
        if (order.equals("wait")) {
            waiting.add(answer);
            return;
        }
        if (order.equals("hold")) {
            for (int kib = 0; kib < 1_024; kib++) {
                held.add(new byte[1_024]);
            }
        } else if (order.equals("drop")) {
            held.clear();
        } else if (order.equals("make")) {
            Shelf.make(512);
        } else if (order.equals("waste")) {
            Shelf.make(16 << 10);
        } else if (order.equals("fail")) {
            throw new IllegalStateException("as it was told");
        }
        answer.onNext("done");
        answer.onCompleted();
    }

    String call(String tenant, String order) {
        return call(channel, tenant, order);
    }

    String callRetrying(String tenant, String order) {
        return call(retrying, tenant, order);
    }

    /** A call that can be cancelled. */
    Future<String> callLater(String tenant, String order) {
        return ClientCalls.futureUnaryCall(
                with(channel, tenant, order).newCall(method, CallOptions.DEFAULT), order);
    }

    private String call(ManagedChannel channel, String tenant, String order) {
        return ClientCalls.blockingUnaryCall(
                with(channel, tenant, order),
                method,
                CallOptions.DEFAULT.withDeadlineAfter(1, TimeUnit.MINUTES),
                order);
    }

    private static Channel with(ManagedChannel channel, String tenant, String order) {
        Metadata headers = new Metadata();
        headers.put(TENANT, tenant);
        headers.put(ORDER, order);
        return ClientInterceptors.intercept(
                channel, MetadataUtils.newAttachHeadersInterceptor(headers));
    }

    @Override
    public void close() {
        channel.shutdownNow();
        retrying.shutdownNow();
        server.shutdownNow();
    }

    /** Opens the tenant's scope around whatever runs of a call. */
    private static final class Tenants implements ServerInterceptor {
        @Override
        public <Q, A> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
            String tenant = headers.get(TENANT);
            try (Scope scope = Heapwarden.enter(tenant)) {
                assert scope != null;
                ServerCall.Listener<Q> listener = next.startCall(call, headers);
                if ("broken".equals(headers.get(ORDER))) {
                    throw new IllegalStateException("an interceptor that fails");
                }
                return new SimpleForwardingServerCallListener<Q>(listener) {
                    @Override
                    public void onHalfClose() {
                        Heapwarden.run(tenant, super::onHalfClose);
                    }
                };
            }
        }
    }

    private static final class Text implements MethodDescriptor.Marshaller<String> {
        @Override
        public InputStream stream(String text) {
            return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String parse(InputStream stream) {
            try {
                return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        }
    }
}
