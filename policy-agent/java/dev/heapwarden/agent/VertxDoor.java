package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;

/**
 * The door of Vert.x Web 4 and 5: at {@code RouterImpl.handle}. It gets the router and the request. In Quarkus every
 * request comes by here, whatever serves it.
 */
final class VertxDoor extends EventLoopDoor {
    private static final String REQUEST = "io.vertx.core.http.HttpServerRequest";
    private static final String RESPONSE = "io.vertx.core.http.HttpServerResponse";
    private static final String METHOD = "io.vertx.core.http.HttpMethod";
    private static final String STRING = "java.lang.String";

    private final MethodHandle handle;
    private final MethodHandle getMethod;
    private final MethodHandle name;
    private final MethodHandle path;
    private final MethodHandle resume;
    private final MethodHandle response;
    private final MethodHandle setStatusCode;
    private final MethodHandle putHeader;
    private final MethodHandle end;

    VertxDoor(Container vertx) throws ReflectiveOperationException {
        super(vertx);
        handle = vertx.own("void", "handle", REQUEST);
        getMethod = vertx.method(REQUEST, METHOD, "method");
        name = vertx.method(METHOD, STRING, "name");
        path = vertx.method(REQUEST, STRING, "path");
        resume = vertx.method(REQUEST, REQUEST, "resume");
        response = vertx.method(REQUEST, RESPONSE, "response");
        setStatusCode = vertx.method(RESPONSE, RESPONSE, "setStatusCode", "int");
        putHeader = vertx.method(RESPONSE, RESPONSE, "putHeader", STRING, STRING);
        end = vertx.method(RESPONSE, "io.vertx.core.Future", "end", STRING);
    }

    /** A request may be wrapped on its way from router to router; its response is the same. */
    @Override
    Object identity(Object[] call) throws Throwable {
        return (Object) response.invokeExact(call[1]);
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        Object method = (Object) getMethod.invokeExact(request);
        return (String) name.invokeExact(method);
    }

    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        return (String) path.invokeExact(request);
    }

    /** Nobody reads the body: it is let go of, or the connection would stand still where the program has paused it. */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        Object request = call[1];
        Object answer = (Object) response.invokeExact(request);
        Object same = (Object) setStatusCode.invokeExact(answer, status);
        same = (Object) putHeader.invokeExact(same, "Retry-After", retryAfterSeconds);
        same = (Object) putHeader.invokeExact(same, "Content-Type", "text/plain");
        Object ended = (Object) end.invokeExact(same, text);
        same = (Object) resume.invokeExact(request);
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        handle.invokeExact(call[0], call[1]);
        return true;
    }
}
