package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;

/** Reads requests whose method is of Netty's class. */
final class NettyRequest {
    private static final String METHOD = "io.netty.handler.codec.http.HttpMethod";
    private static final String STRING = "java.lang.String";

    private final MethodHandle getMethod;
    private final MethodHandle name;
    private final MethodHandle uri;

    /**
     * Those of one type.
     *
     * @param type has the methods {@code method} and {@code uri}
     */
    NettyRequest(Container netty, String type) throws ReflectiveOperationException {
        getMethod = netty.method(type, METHOD, "method");
        name = netty.method(METHOD, STRING, "name");
        uri = netty.method(type, STRING, "uri");
    }

    /** The request's method. */
    String method(Object request) throws Throwable {
        Object method = (Object) getMethod.invokeExact(request);
        return (String) name.invokeExact(method);
    }

    /** The path of its target. */
    String path(Object request) throws Throwable {
        return RequestTarget.path((String) uri.invokeExact(request));
    }
}
