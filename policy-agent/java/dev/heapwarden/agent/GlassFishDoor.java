package dev.heapwarden.agent;

import java.io.PrintWriter;
import java.lang.invoke.MethodHandle;

/**
 * The door of GlassFish 7 and Payara 6, Micro too: at {@code StandardContextValve.invoke} with the
 * interfaces {@code org.apache.catalina.Request} and {@code Response}, which is not Tomcat's.
 *
 * <p>The host has bound the application's loader to the thread and told its request listeners; the
 * context's valves and its authenticator have run. Forwards, includes, error pages and asynchronous
 * dispatches do not come by here.
 */
final class GlassFishDoor extends Door {
    private static final String CALLED_WITH = "org.apache.catalina.Request";
    private static final String ANSWERS = "org.apache.catalina.Response";
    private static final String REQUEST = "org.apache.catalina.connector.Request";
    private static final String RESPONSE = "org.apache.catalina.connector.Response";
    private static final String CHUNK = "org.glassfish.grizzly.http.util.DataChunk";
    private static final String STRING = "java.lang.String";

    private final MethodHandle invoke;
    private final MethodHandle getDispatcherType;
    private final MethodHandle getMethod;
    private final MethodHandle getRequestPath;
    private final MethodHandle setStatus;
    private final MethodHandle setHeader;
    private final MethodHandle setContentType;
    private final MethodHandle getReporter;

    GlassFishDoor(Container glassfish) throws ReflectiveOperationException {
        invoke = glassfish.own("int", "invoke", CALLED_WITH, ANSWERS);
        getDispatcherType = getDispatcherType(glassfish);
        getMethod = glassfish.method(REQUEST, STRING, "getMethod");
        getRequestPath = glassfish.method(REQUEST, CHUNK, "getRequestPathMB");
        setStatus = glassfish.method(RESPONSE, "void", "setStatus", "int");
        setHeader = glassfish.method(RESPONSE, "void", "setHeader", STRING, STRING);
        setContentType = glassfish.method(RESPONSE, "void", "setContentType", STRING);
        getReporter = glassfish.method(RESPONSE, "java.io.PrintWriter", "getReporter");
    }

    private static MethodHandle getDispatcherType(Container glassfish)
            throws ReflectiveOperationException {
        try {
            return getDispatcherType(glassfish, "jakarta.servlet.DispatcherType");
        } catch (ClassNotFoundException | NoSuchMethodException older) {
            // GlassFish and Payara 5 have servlets of before Jakarta.
            return getDispatcherType(glassfish, "javax.servlet.DispatcherType");
        }
    }

    private static MethodHandle getDispatcherType(Container glassfish, String dispatcherType)
            throws ReflectiveOperationException {
        return glassfish.method(REQUEST, dispatcherType, "getDispatcherType");
    }

    /** Every other dispatch belongs to a request that is inside. */
    @Override
    boolean isNew(Object at, Object request) throws Throwable {
        Object dispatcherType = (Object) getDispatcherType.invokeExact(request);
        return ((Enum<?>) dispatcherType).name().equals("REQUEST");
    }

    @Override
    ClassLoader service(Object at, Object request) {
        return Thread.currentThread().getContextClassLoader();
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        return (String) getMethod.invokeExact(request);
    }

    /**
     * Returns the path that the mapper matched servlets with: decoded, without the context's path.
     * The chunk keeps its string, and the guarded method asks for the same one.
     */
    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        Object path = (Object) getRequestPath.invokeExact(request);
        // No conditional expression: compilers of different JDKs give it different types.
        if (path == null) {
            return null;
        }
        return path.toString();
    }

    /**
     * Only a response that is marked as an error gets the application's error page or the server's
     * report, and a status alone does not mark it. The server closes the connection after every
     * 503, and reads the rest of a body before it keeps one after a 429.
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

    /** The method itself always returns that the pipeline ends, as it does at the guard. */
    @Override
    boolean again(Object[] call) throws Throwable {
        int end = (int) invoke.invokeExact(call[0], call[1], call[2]);
        return true;
    }
}
