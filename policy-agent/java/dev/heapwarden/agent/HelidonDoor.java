package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/**
 * The door of Helidon 4: at {@code HttpRoutingImpl.route}. It gets the routing, the request, the connection, and the
 * response. A request has a virtual thread, and stays on it.
 */
final class HelidonDoor extends LibraryDoor {
    private static final String CONNECTION = "io.helidon.webserver.ConnectionContext";
    private static final String REQUEST = "io.helidon.webserver.http.RoutingRequest";
    private static final String RESPONSE = "io.helidon.webserver.http.RoutingResponse";
    private static final String PROLOGUE = "io.helidon.http.HttpPrologue";
    private static final String METHOD = "io.helidon.http.Method";
    private static final String PATH = "io.helidon.common.uri.UriPath";
    private static final String SERVER_RESPONSE = "io.helidon.webserver.http.ServerResponse";
    private static final String STRING = "java.lang.String";

    private final MethodHandle route;
    private final MethodHandle prologue;
    private final MethodHandle getMethod;
    private final MethodHandle text;
    private final MethodHandle uriPath;
    private final MethodHandle pathOf;
    private final MethodHandle setStatus;
    private final MethodHandle header;
    private final MethodHandle send;

    HelidonDoor(Container helidon) throws ReflectiveOperationException {
        super(helidon);
        route = helidon.own("void", "route", CONNECTION, REQUEST, RESPONSE);
        prologue = helidon.method(REQUEST, PROLOGUE, "prologue");
        getMethod = helidon.method(PROLOGUE, METHOD, "method");
        text = helidon.method(METHOD, STRING, "text");
        uriPath = helidon.method(PROLOGUE, PATH, "uriPath");
        pathOf = helidon.method(PATH, STRING, "path");
        setStatus = helidon.method(SERVER_RESPONSE, SERVER_RESPONSE, "status", "int");
        header =
                helidon.method(
                                SERVER_RESPONSE,
                                SERVER_RESPONSE,
                                "header",
                                STRING,
                                "[Ljava.lang.String;")
                        .asFixedArity();
        send = helidon.method(SERVER_RESPONSE, "void", "send", "[B");
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        Object line = (Object) prologue.invokeExact(request);
        Object method = (Object) getMethod.invokeExact(line);
        return (String) text.invokeExact(method);
    }

    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        Object line = (Object) prologue.invokeExact(request);
        Object path = (Object) uriPath.invokeExact(line);
        return (String) pathOf.invokeExact(path);
    }

    /** Helidon reads the rest of a body, or closes the connection. */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String body)
            throws Throwable {
        Object response = call[3];
        Object same = (Object) setStatus.invokeExact(response, status);
        same = (Object) header.invokeExact(same, "Retry-After", new String[] {retryAfterSeconds});
        same = (Object) header.invokeExact(same, "Content-Type", new String[] {"text/plain"});
        // Helidon would send it for a HEAD, too.
        String sent = method(call[0], call[1]).equals("HEAD") ? "" : body;
        send.invokeExact(same, sent.getBytes(StandardCharsets.US_ASCII));
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        route.invokeExact(call[0], call[2], call[1], call[3]);
        return true;
    }
}
