package dev.heapwarden.agent;

import java.io.PrintWriter;
import java.lang.invoke.MethodHandle;

/**
 * The door of Tomcat 9 to 11, alone or embedded: at {@code StandardContextValve.invoke}, whose arguments
 * are a request and a response of {@code org.apache.catalina.connector}.
 *
 * <p>The host has bound the application's loader to the thread and told its request listeners; valves and
 * the authenticator of the context have run. Forwards, includes and error pages do not come by here.
 */
final class TomcatDoor extends Door {
    private static final String REQUEST = "org.apache.catalina.connector.Request";
    private static final String RESPONSE = "org.apache.catalina.connector.Response";
    private static final String BYTES = "org.apache.tomcat.util.buf.MessageBytes";
    private static final String CHARS = "org.apache.tomcat.util.buf.CharChunk";
    private static final String STRING = "java.lang.String";

    /** {@code MessageBytes.T_CHARS}: its text is in the chunk of characters. */
    private static final int CHARACTERS = 3;

    private final MethodHandle invoke;
    private final MethodHandle isAsyncDispatching;
    private final MethodHandle getMethod;
    private final MethodHandle getRequestPath;
    private final MethodHandle getType;
    private final MethodHandle getCharChunk;
    private final MethodHandle setStatus;
    private final MethodHandle setHeader;
    private final MethodHandle setContentType;
    private final MethodHandle getReporter;

    TomcatDoor(Container tomcat) throws ReflectiveOperationException {
        invoke = tomcat.own("void", "invoke", REQUEST, RESPONSE);
        isAsyncDispatching = tomcat.method(REQUEST, "boolean", "isAsyncDispatching");
        getMethod = tomcat.method(REQUEST, STRING, "getMethod");
        getRequestPath = tomcat.method(REQUEST, BYTES, "getRequestPathMB");
        getType = tomcat.method(BYTES, "int", "getType");
        getCharChunk = tomcat.method(BYTES, CHARS, "getCharChunk");
        setStatus = tomcat.method(RESPONSE, "void", "setStatus", "int");
        setHeader = tomcat.method(RESPONSE, "void", "setHeader", STRING, STRING);
        setContentType = tomcat.method(RESPONSE, "void", "setContentType", STRING);
        getReporter = tomcat.method(RESPONSE, "java.io.PrintWriter", "getReporter");
    }

    /** A request that {@code AsyncContext.dispatch} sends through the pipeline again is inside. */
    @Override
    boolean isNew(Object at, Object request) throws Throwable {
        return !(boolean) isAsyncDispatching.invokeExact(request);
    }

    @Override
    ClassLoader service(Object at, Object request) {
        return Thread.currentThread().getContextClassLoader();
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        return (String) getMethod.invokeExact(request);
    }

    /** Returns the path that the mapper matched servlets with: decoded, without the context's path. Not copied. */
    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        Object path = (Object) getRequestPath.invokeExact(request);
        if (path == null) {
            return null;
        }
        if ((int) getType.invokeExact(path) == CHARACTERS) {
            return (CharSequence) (Object) getCharChunk.invokeExact(path);
        }
        return path.toString();
    }

    /**
     * {@code sendError} would run the application's error page. Tomcat closes the connection after every
     * 503, and has read the rest of a body before up to its {@code maxSwallowSize}.
     */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        setStatus.invokeExact(call[2], status);
        setHeader.invokeExact(call[2], "Retry-After", retryAfterSeconds);
        setContentType.invokeExact(call[2], "text/plain");
        PrintWriter body = (PrintWriter) getReporter.invokeExact(call[2]);
        // Null if somebody has written already.
        if (body != null) {
            body.print(text);
        }
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        invoke.invokeExact(call[0], call[1], call[2]);
        return true;
    }
}
