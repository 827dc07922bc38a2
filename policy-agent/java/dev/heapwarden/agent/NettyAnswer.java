package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/** Makes answers of Netty's classes for HTTP/1. */
final class NettyAnswer {
    private static final String RESPONSE = "io.netty.handler.codec.http.DefaultFullHttpResponse";
    private static final String MESSAGE = "io.netty.handler.codec.http.HttpMessage";
    private static final String VERSION = "io.netty.handler.codec.http.HttpVersion";
    private static final String STATUS = "io.netty.handler.codec.http.HttpResponseStatus";
    private static final String HEADERS = "io.netty.handler.codec.http.HttpHeaders";
    private static final String BYTES = "io.netty.buffer.ByteBuf";
    private static final String STRING = "java.lang.String";
    private static final String ANY = "java.lang.Object";

    private final MethodHandle wrapped;
    private final MethodHandle status;
    private final MethodHandle response;
    private final MethodHandle headers;
    private final MethodHandle set;
    private final Object version;

    NettyAnswer(Container netty) throws ReflectiveOperationException {
        wrapped = netty.function("io.netty.buffer.Unpooled", BYTES, "wrappedBuffer", "[B");
        status = netty.function(STATUS, STATUS, "valueOf", "int");
        response = netty.made(RESPONSE, VERSION, STATUS, BYTES);
        headers = netty.method(MESSAGE, HEADERS, "headers");
        set = netty.method(HEADERS, HEADERS, "set", STRING, ANY);
        version = netty.constant(VERSION, VERSION, "HTTP_1_1");
    }

    /** The bytes of a text. */
    Object bytes(String text) throws Throwable {
        return (Object) wrapped.invokeExact(text.getBytes(StandardCharsets.US_ASCII));
    }

    /** A response with these bytes, whose length is that of the text. */
    Object made(int code, String retryAfterSeconds, Object bytes, String text) throws Throwable {
        Object known = (Object) status.invokeExact(code);
        Object made = (Object) response.invokeExact(version, known, bytes);
        put(made, "Retry-After", retryAfterSeconds);
        put(made, "Content-Type", "text/plain");
        put(made, "Content-Length", Integer.toString(text.length()));
        return made;
    }

    /** Sets a header. */
    void put(Object message, String name, Object value) throws Throwable {
        Object fields = (Object) headers.invokeExact(message);
        Object same = (Object) set.invokeExact(fields, name, value);
    }
}
