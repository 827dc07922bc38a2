package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;

/**
 * The door of gRPC, over whatever transport: at {@code ServerImpl.ServerTransportListenerImpl.streamCreated}. It gets
 * the stream, the full name of the method, the transport's listener, and the headers.
 */
final class GrpcDoor extends EventLoopDoor {
    private static final String SERVER = "io.grpc.internal.ServerImpl";
    private static final String STREAM = "io.grpc.internal.ServerStream";
    private static final String LISTENER = "io.grpc.internal.ServerStreamListener";
    private static final String STATUS = "io.grpc.Status";
    private static final String METADATA = "io.grpc.Metadata";
    private static final String KEY = "io.grpc.Metadata$Key";
    private static final String MARSHALLER = "io.grpc.Metadata$AsciiMarshaller";
    private static final String STRING = "java.lang.String";

    /** How long a client that tries again by itself is to wait: of gRPC's proposal A6. */
    private static final String PUSHBACK = "grpc-retry-pushback-ms";

    private final MethodHandle streamCreated;
    private final MethodHandle withDescription;
    private final MethodHandle metadata;
    private final MethodHandle put;
    private final MethodHandle setListener;
    private final MethodHandle close;
    private final Object exhausted;
    private final Object nobody;
    private final Object pushback;

    GrpcDoor(Container grpc) throws ReflectiveOperationException {
        super(grpc);
        streamCreated = grpc.own("void", "streamCreated", STREAM, STRING, METADATA);
        withDescription = grpc.method(STATUS, STATUS, "withDescription", STRING);
        metadata = grpc.made(METADATA);
        put = grpc.method(METADATA, "void", "put", KEY, "java.lang.Object");
        setListener = grpc.method(STREAM, "void", "setListener", LISTENER);
        close = grpc.method(STREAM, "void", "close", STATUS, METADATA);
        exhausted = grpc.constant(STATUS, STATUS, "RESOURCE_EXHAUSTED");
        nobody = grpc.constant(SERVER, LISTENER, "NOOP_LISTENER");
        Object plain = grpc.constant(METADATA, MARSHALLER, "ASCII_STRING_MARSHALLER");
        pushback = key(grpc, plain);
    }

    private static Object key(Container grpc, Object plain) throws ReflectiveOperationException {
        MethodHandle of = grpc.function(KEY, KEY, "of", STRING, MARSHALLER);
        try {
            return (Object) of.invokeExact(PUSHBACK, plain);
        } catch (ReflectiveOperationException | RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable failure) {
            throw new ReflectiveOperationException(failure);
        }
    }

    /** A call within the program is a part of what has come in already. */
    @Override
    boolean isNew(Object at, Object request) {
        return !at.getClass().getName().startsWith("io.grpc.inprocess.");
    }

    /** Names of methods are shared. */
    @Override
    Object identity(Object[] call) {
        return call[0];
    }

    @Override
    String method(Object at, Object request) {
        return "POST";
    }

    /** As HTTP/2 has it. */
    @Override
    CharSequence path(Object at, Object request) {
        return "/" + request;
    }

    /** As the server itself does for an encoding that it does not know. */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        Object stream = call[0];
        setListener.invokeExact(stream, nobody);
        Object trailers = (Object) metadata.invokeExact();
        put.invokeExact(trailers, pushback, (Object) (retryAfterSeconds + "000"));
        Object why = (Object) withDescription.invokeExact(exhausted, text.trim());
        close.invokeExact(stream, why, trailers);
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        streamCreated.invokeExact(call[2], call[0], (String) call[1], call[3]);
        return true;
    }
}
