package dev.heapwarden.agent;

import java.io.PrintWriter;
import java.lang.invoke.MethodHandle;

/**
 * The door of Undertow 2, alone or in WildFly: at {@code ServletInitialHandler.dispatchRequest}. It
 * gets the servlet context, the type of the dispatch, the handler, the exchange, and the chain of servlets.
 */
final class UndertowDoor extends Door {
    private static final String EXCHANGE = "io.undertow.server.HttpServerExchange";
    private static final String CONTEXT = "io.undertow.servlet.handlers.ServletRequestContext";
    private static final String CHAIN = "io.undertow.servlet.handlers.ServletChain";
    private static final String DEPLOYMENT = "io.undertow.servlet.api.Deployment";
    private static final String INFO = "io.undertow.servlet.api.DeploymentInfo";
    private static final String RESPONSE = "io.undertow.servlet.spec.HttpServletResponseImpl";
    private static final String STRING = "java.lang.String";

    private final MethodHandle dispatchRequest;
    private final MethodHandle getRequestMethod;
    private final MethodHandle getRelativePath;
    private final MethodHandle getExchange;
    private final MethodHandle getDeployment;
    private final MethodHandle getDeploymentInfo;
    private final MethodHandle getClassLoader;
    private final MethodHandle getOriginalResponse;
    private final MethodHandle setStatus;
    private final MethodHandle setHeader;
    private final MethodHandle setContentType;
    private final MethodHandle getWriter;

    UndertowDoor(Container undertow) throws ReflectiveOperationException {
        dispatchRequest = dispatchRequest(undertow);
        getRequestMethod =
                undertow.method(EXCHANGE, "io.undertow.util.HttpString", "getRequestMethod");
        getRelativePath = undertow.method(EXCHANGE, STRING, "getRelativePath");
        getExchange = undertow.method(CONTEXT, EXCHANGE, "getExchange");
        getDeployment = undertow.method(CONTEXT, DEPLOYMENT, "getDeployment");
        getDeploymentInfo = undertow.method(DEPLOYMENT, INFO, "getDeploymentInfo");
        getClassLoader = undertow.method(INFO, "java.lang.ClassLoader", "getClassLoader");
        getOriginalResponse = undertow.method(CONTEXT, RESPONSE, "getOriginalResponse");
        setStatus = undertow.method(RESPONSE, "void", "setStatus", "int");
        setHeader = undertow.method(RESPONSE, "void", "setHeader", STRING, STRING);
        setContentType = undertow.method(RESPONSE, "void", "setContentType", STRING);
        getWriter = undertow.method(RESPONSE, "java.io.PrintWriter", "getWriter");
    }

    private static MethodHandle dispatchRequest(Container undertow)
            throws ReflectiveOperationException {
        try {
            return dispatchRequest(undertow, "jakarta.servlet.DispatcherType");
        } catch (ClassNotFoundException | NoSuchMethodException older) {
            // Undertow 2.2 has servlets of before Jakarta.
            return dispatchRequest(undertow, "javax.servlet.DispatcherType");
        }
    }

    private static MethodHandle dispatchRequest(Container undertow, String dispatcherType)
            throws ReflectiveOperationException {
        return undertow.own("void", "dispatchRequest", EXCHANGE, CONTEXT, CHAIN, dispatcherType);
    }

    /** Every other dispatch belongs to a request that is inside. */
    @Override
    boolean isNew(Object at, Object dispatcherType) {
        return ((Enum<?>) dispatcherType).name().equals("REQUEST");
    }

    @Override
    boolean isWithinRequest(Object at, Object dispatcherType) {
        return isForwardOrInclude(dispatcherType);
    }

    @Override
    ClassLoader service(Object at, Object dispatcherType) throws Throwable {
        Object deployment = (Object) getDeployment.invokeExact(at);
        Object info = (Object) getDeploymentInfo.invokeExact(deployment);
        return (ClassLoader) getClassLoader.invokeExact(info);
    }

    @Override
    String method(Object at, Object dispatcherType) throws Throwable {
        Object exchange = (Object) getExchange.invokeExact(at);
        Object method = (Object) getRequestMethod.invokeExact(exchange);
        return method.toString();
    }

    @Override
    CharSequence path(Object at, Object dispatcherType) throws Throwable {
        Object exchange = (Object) getExchange.invokeExact(at);
        return (String) getRelativePath.invokeExact(exchange);
    }

    /**
     * {@code sendError} would run the application's error page. Closed, the answer goes out before the
     * body has come, and nobody is told to continue with one. When the method returns, Undertow reads
     * the rest of a body, up to the connector's limit, and keeps the connection.
     */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        Object response = (Object) getOriginalResponse.invokeExact(call[0]);
        setStatus.invokeExact(response, status);
        setHeader.invokeExact(response, "Retry-After", retryAfterSeconds);
        setContentType.invokeExact(response, "text/plain");
        PrintWriter body = (PrintWriter) getWriter.invokeExact(response);
        body.print(text);
        body.close();
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        dispatchRequest.invokeExact(call[2], call[3], call[0], call[4], call[1]);
        return true;
    }
}
