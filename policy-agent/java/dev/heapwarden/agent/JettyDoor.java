package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The door of Jetty 12, whatever the version of its servlets: at {@code ContextHandler.handle}, whose
 * arguments are a request, a response and a callback of Jetty's core.
 *
 * <p>Async and error dispatches do not come by here.
 */
final class JettyDoor extends Door {
    private static final String CONTEXT = "org.eclipse.jetty.server.handler.ContextHandler";
    private static final String REQUEST = "org.eclipse.jetty.server.Request";
    private static final String RESPONSE = "org.eclipse.jetty.server.Response";
    private static final String CALLBACK = "org.eclipse.jetty.util.Callback";
    private static final String URI = "org.eclipse.jetty.http.HttpURI";
    private static final String FIELDS = "org.eclipse.jetty.http.HttpFields$Mutable";
    private static final String STRING = "java.lang.String";

    /** A request's attribute while another context forwards it or includes what it answers. */
    private static final String CROSS_CONTEXT = "org.eclipse.jetty.CrossContextDispatch";

    private final MethodHandle handle;
    private final MethodHandle isStarted;
    private final MethodHandle checkVirtualHost;
    private final MethodHandle getContextPath;
    private final MethodHandle getClassLoader;
    private final MethodHandle getMethod;
    private final MethodHandle getHttpUri;
    private final MethodHandle getCanonicalPath;
    private final MethodHandle getAttribute;
    private final MethodHandle consumeAvailable;
    private final MethodHandle setStatus;
    private final MethodHandle getHeaders;
    private final MethodHandle put;
    private final MethodHandle write;
    private final MethodHandle failed;

    JettyDoor(Container jetty) throws ReflectiveOperationException {
        handle = jetty.own("boolean", "handle", REQUEST, RESPONSE, CALLBACK);
        isStarted = jetty.method(CONTEXT, "boolean", "isStarted");
        checkVirtualHost = jetty.method(CONTEXT, "boolean", "checkVirtualHost", REQUEST);
        getContextPath = jetty.method(CONTEXT, STRING, "getContextPath");
        getClassLoader = jetty.method(CONTEXT, "java.lang.ClassLoader", "getClassLoader");
        getMethod = jetty.method(REQUEST, STRING, "getMethod");
        getHttpUri = jetty.method(REQUEST, URI, "getHttpURI");
        getCanonicalPath = jetty.method(URI, STRING, "getCanonicalPath");
        getAttribute = jetty.method(REQUEST, "java.lang.Object", "getAttribute", STRING);
        consumeAvailable = jetty.method(REQUEST, "boolean", "consumeAvailable");
        setStatus = jetty.method(RESPONSE, "void", "setStatus", "int");
        getHeaders = jetty.method(RESPONSE, FIELDS, "getHeaders");
        put = jetty.method(FIELDS, FIELDS, "put", STRING, STRING);
        write =
                jetty.method(
                        RESPONSE, "void", "write", "boolean", "java.nio.ByteBuffer", CALLBACK);
        failed = jetty.method(CALLBACK, "void", "failed", "java.lang.Throwable");
    }

    /**
     * Jetty may offer a request to one context after the other: only the one that would take it is
     * asked. One that comes from inside another context is not new.
     */
    @Override
    boolean isNew(Object at, Object request) throws Throwable {
        return (boolean) isStarted.invokeExact(at)
                && (boolean) checkVirtualHost.invokeExact(at, request)
                && path(at, request) != null
                && (Object) getAttribute.invokeExact(request, CROSS_CONTEXT) == null;
    }

    /** From another context. A dispatch within one does not come by here. */
    @Override
    boolean isWithinRequest(Object at, Object request) throws Throwable {
        Object kind = (Object) getAttribute.invokeExact(request, CROSS_CONTEXT);
        return "FORWARD".equals(kind) || "INCLUDE".equals(kind);
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

    /**
     * As Jetty will find it once the context is entered, with its percent escapes; null if the path is
     * not the context's.
     */
    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        Object uri = (Object) getHttpUri.invokeExact(request);
        String path = (String) getCanonicalPath.invokeExact(uri);
        String context = (String) getContextPath.invokeExact(at);
        // No conditional expression: compilers of different JDKs give it different types.
        if (path == null || context == null || !isWithin(context, path)) {
            return null;
        }
        return path;
    }

    @Override
    int begin(Object at, CharSequence path) throws Throwable {
        return Math.min(length((String) getContextPath.invokeExact(at)), path.length());
    }

    /**
     * No error handler is asked. Jetty reads what has come of a body, and closes the connection if there
     * is more. The callback must be completed, for Jetty waits for it: the write does it at its end.
     */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        try {
            setStatus.invokeExact(call[2], status);
            Object headers = (Object) getHeaders.invokeExact(call[2]);
            put(headers, "Retry-After", retryAfterSeconds);
            put(headers, "Content-Type", "text/plain");
            if (!(boolean) consumeAvailable.invokeExact(call[1])) {
                put(headers, "Connection", "close");
            }
            ByteBuffer body = ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
            write.invokeExact(call[2], true, body, call[3]);
        } catch (Throwable failure) {
            failed.invokeExact(call[3], failure);
        }
    }

    private void put(Object headers, String name, String value) throws Throwable {
        Object same = (Object) put.invokeExact(headers, name, value);
    }

    /**
     * If it is false, the guarded method goes on and handles the request once more, outside of the probe.
     * That is harmless: a handler that gives false has declined, and by Jetty's contract has not read
     * from the request, written a response, or touched the callback.
     */
    @Override
    boolean again(Object[] call) throws Throwable {
        return (boolean) handle.invokeExact(call[0], call[1], call[2], call[3]);
    }
}
