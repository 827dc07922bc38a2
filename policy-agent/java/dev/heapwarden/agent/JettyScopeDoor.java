package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/**
 * The door of Jetty 9.4 to 11, with either name of the Servlet API: at
 * {@code ContextHandler.doScope}.
 * It gets the handler, Jetty's own request, the target, and the request and response that outer
 * handlers may have wrapped.
 *
 * <p>The context has not been entered: neither its loader is bound nor any listener of it told.
 * Dispatches of every kind come by here; a request from outside is one of the type REQUEST.
 */
final class JettyScopeDoor extends Door {
    private static final String CONTEXT = "org.eclipse.jetty.server.handler.ContextHandler";
    private static final String REQUEST = "org.eclipse.jetty.server.Request";
    private static final String RESPONSE = "org.eclipse.jetty.server.Response";
    private static final String INPUT = "org.eclipse.jetty.server.HttpInput";
    private static final String OUTPUT = "org.eclipse.jetty.server.HttpOutput";
    private static final String STRING = "java.lang.String";
    private static final String BYTES = "[B";

    private final MethodHandle doScope;
    private final MethodHandle isAvailable;
    private final MethodHandle checkVirtualHost;
    private final MethodHandle getContextPath;
    private final MethodHandle getClassLoader;
    private final MethodHandle getDispatcherType;
    private final MethodHandle isHandled;
    private final MethodHandle setHandled;
    private final MethodHandle getMethod;
    private final MethodHandle getPathInfo;
    private final MethodHandle getHttpInput;
    private final MethodHandle consumeAll;
    private final MethodHandle getResponse;
    private final MethodHandle setStatus;
    private final MethodHandle setHeader;
    private final MethodHandle setContentType;
    private final MethodHandle getHttpOutput;
    private final MethodHandle write;

    JettyScopeDoor(Container jetty) throws ReflectiveOperationException {
        // The door and the type of a dispatch are all that names the Servlet API.
        boolean isJakarta = isJakarta(jetty);
        String servlets = isJakarta ? "jakarta.servlet." : "javax.servlet.";
        doScope = doScope(jetty, servlets);
        getDispatcherType =
                jetty.method(REQUEST, servlets + "DispatcherType", "getDispatcherType");
        isAvailable = jetty.method(CONTEXT, "boolean", "isAvailable");
        checkVirtualHost = jetty.method(CONTEXT, "boolean", "checkVirtualHost", REQUEST);
        getContextPath = jetty.method(CONTEXT, STRING, "getContextPath");
        getClassLoader = jetty.method(CONTEXT, "java.lang.ClassLoader", "getClassLoader");
        isHandled = jetty.method(REQUEST, "boolean", "isHandled");
        setHandled = jetty.method(REQUEST, "void", "setHandled", "boolean");
        getMethod = jetty.method(REQUEST, STRING, "getMethod");
        getPathInfo = jetty.method(REQUEST, STRING, "getPathInfo");
        getHttpInput = jetty.method(REQUEST, INPUT, "getHttpInput");
        consumeAll = jetty.method(INPUT, "boolean", "consumeAll");
        getResponse = jetty.method(REQUEST, RESPONSE, "getResponse");
        setStatus = jetty.method(RESPONSE, "void", "setStatus", "int");
        setHeader = jetty.method(RESPONSE, "void", "setHeader", STRING, STRING);
        setContentType = jetty.method(RESPONSE, "void", "setContentType", STRING);
        getHttpOutput = jetty.method(RESPONSE, OUTPUT, "getHttpOutput");
        write = jetty.method(OUTPUT, "void", "write", BYTES, "int", "int");
    }

    private static boolean isJakarta(Container jetty) throws ReflectiveOperationException {
        try {
            doScope(jetty, "jakarta.servlet.");
            return true;
        } catch (ClassNotFoundException | NoSuchMethodException older) {
            return false;
        }
    }

    private static MethodHandle doScope(Container jetty, String servlets)
            throws ReflectiveOperationException {
        String request = servlets + "http.HttpServletRequest";
        String response = servlets + "http.HttpServletResponse";
        return jetty.own("void", "doScope", STRING, REQUEST, request, response);
    }

    /**
     * Jetty may offer a request to one context after the other: only the one that would take it is
     * asked. Every other dispatch belongs to a request that is inside.
     */
    @Override
    boolean isNew(Object at, Object request) throws Throwable {
        Object dispatch = (Object) getDispatcherType.invokeExact(request);
        return dispatch instanceof Enum
                && ((Enum<?>) dispatch).name().equals("REQUEST")
                && !(boolean) isHandled.invokeExact(request)
                && (boolean) isAvailable.invokeExact(at)
                && (boolean) checkVirtualHost.invokeExact(at, request)
                && path(at, request) != null;
    }

    @Override
    boolean isWithinRequest(Object at, Object request) throws Throwable {
        Object dispatch = (Object) getDispatcherType.invokeExact(request);
        return dispatch instanceof Enum && isForwardOrInclude(dispatch);
    }

    /** Null for a context that is no web application. */
    @Override
    ClassLoader service(Object at, Object request) throws Throwable {
        return (ClassLoader) getClassLoader.invokeExact(at);
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        return (String) getMethod.invokeExact(request);
    }

    /** Decoded, as Jetty has found the context with it; null if it is not the context's. */
    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        String path = (String) getPathInfo.invokeExact(request);
        String context = (String) getContextPath.invokeExact(at);
        // No conditional expression: compilers of different JDKs give it different types.
        if (path == null || context == null || !isWithin(context, path)) {
            return null;
        }
        return path;
    }

    @Override
    int begin(Object at, CharSequence path) throws Throwable {
        String context = (String) getContextPath.invokeExact(at);
        return Math.min(length(context), path.length());
    }

    /**
     * {@code sendError} would run the application's error page. Jetty sends the answer once the
     * handlers have returned. What has come of a body is read, and the connection closed if there
     * is more; a client that waits to be told to send one is not told.
     */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        Object request = call[1];
        // First, so that Jetty offers the request to no other handler, whatever fails.
        setHandled.invokeExact(request, true);
        Object response = (Object) getResponse.invokeExact(request);
        setStatus.invokeExact(response, status);
        setHeader.invokeExact(response, "Retry-After", retryAfterSeconds);
        setContentType.invokeExact(response, "text/plain");
        Object input = (Object) getHttpInput.invokeExact(request);
        if (!(boolean) consumeAll.invokeExact(input)) {
            setHeader.invokeExact(response, "Connection", "close");
        }
        byte[] body = text.getBytes(StandardCharsets.US_ASCII);
        Object output = (Object) getHttpOutput.invokeExact(response);
        write.invokeExact(output, body, 0, body.length);
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        doScope.invokeExact(call[0], (String) call[2], call[1], call[3], call[4]);
        return true;
    }
}
