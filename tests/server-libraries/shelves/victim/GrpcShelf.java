package victim;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** gRPC: {@code call PATH} asks it, as another program would. */
public final class GrpcShelf extends Shelf {
    private static final Metadata.Key<String> PUSHBACK =
            Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);

    private static final MethodDescriptor<String, String> METHOD =
            MethodDescriptor.<String, String>newBuilder()
                    .setType(MethodDescriptor.MethodType.UNARY)
                    .setFullMethodName("shop.Shelf/Ask")
                    .setRequestMarshaller(new Text())
                    .setResponseMarshaller(new Text())
                    .build();

    private static final MethodDescriptor<String, String> HEALTH =
            METHOD.toBuilder().setFullMethodName("shop.Shelf/Health").build();

    private ManagedChannel channel;

    public static void main(String[] args) throws Exception {
        new GrpcShelf().serve();
    }

    @Override
    int start() throws IOException {
        ServerServiceDefinition service =
                ServerServiceDefinition.builder("shop.Shelf")
                        .addMethod(METHOD, ServerCalls.asyncUnaryCall(this::unary))
                        .addMethod(HEALTH, ServerCalls.asyncUnaryCall(this::unary))
                        .build();
        Server server =
                NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
                        .addService(service)
                        .build()
                        .start();
        channel =
                NettyChannelBuilder.forAddress("127.0.0.1", server.getPort())
                        .usePlaintext()
                        .build();
        return server.getPort();
    }

    private void unary(String path, io.grpc.stub.StreamObserver<String> answers) {
        answers.onNext(answer(path));
        answers.onCompleted();
    }

    @Override
    Map<String, Protocol.Command> orders() {
        return Map.of("call", words -> call(words[1]));
    }

    private void call(String path) {
        MethodDescriptor<String, String> method = path.equals("/health") ? HEALTH : METHOD;
        try {
            ClientCalls.blockingUnaryCall(channel, method, CallOptions.DEFAULT, path);
            Protocol.say("OK");
        } catch (StatusRuntimeException refused) {
            Metadata trailers = refused.getTrailers();
            String pushback = trailers == null ? null : trailers.get(PUSHBACK);
            Protocol.say(refused.getStatus().getCode() + " " + pushback);
        }
    }

    private static final class Text implements MethodDescriptor.Marshaller<String> {
        @Override
        public InputStream stream(String value) {
            return new ByteArrayInputStream(value.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String parse(InputStream stream) {
            try {
                return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }
    }
}
