package dev.heapwarden.agent;

import java.io.PrintWriter;
import java.lang.invoke.MethodHandle;
import java.util.EnumSet;

/**
 * The door of Open Liberty: at {@code WebAppFilterManager.invokeFilters}. Its objects are the
 * application's context, a request, a response, the manager, what will handle the request, the
 * collaborators to be told, and the connection.
 *
 * <p>Requests whose servlet is remembered come by here as well as others. Collaborators, request
 * listeners, filters and the servlet come after it. Forwards, includes, error pages and async
 * dispatches come by again.
 */
final class LibertyDoor extends Door {
    private static final String REQUEST = "com.ibm.ws.webcontainer.srt.SRTServletRequest";
    private static final String RESPONSE = "com.ibm.ws.webcontainer.srt.SRTServletResponse";
    private static final String CONTEXT = "com.ibm.wsspi.webcontainer.servlet.IServletContext";
    private static final String PROCESSOR = "com.ibm.wsspi.webcontainer.RequestProcessor";
    private static final String CONNECTION = "com.ibm.wsspi.http.HttpInboundConnection";
    private static final String DISPATCH =
            "com.ibm.wsspi.webcontainer.webapp.IWebAppDispatcherContext";
    private static final String DISPATCHER =
            "com.ibm.ws.webcontainer.webapp.WebAppDispatcherContext";
    private static final String WRAPPER = "com.ibm.wsspi.webcontainer.servlet.IServletWrapper";
    private static final String STRING = "java.lang.String";

    private final MethodHandle invokeFilters;
    private final MethodHandle isRequest;
    private final MethodHandle getDispatcherType;
    private final MethodHandle getMethod;
    private final MethodHandle getDispatch;
    private final MethodHandle getRelativeUri;
    private final MethodHandle getClassLoader;
    private final MethodHandle isWrapper;
    private final MethodHandle pushServletReference;
    private final MethodHandle setStatus;
    private final MethodHandle setHeader;
    private final MethodHandle setContentType;
    private final MethodHandle getWriter;

    LibertyDoor(Container liberty) throws ReflectiveOperationException {
        String servlet = "jakarta.servlet.";
        MethodHandle invoked;
        try {
            invoked = invokeFilters(liberty, servlet);
        } catch (ClassNotFoundException | NoSuchMethodException older) {
            // The features up to servlet-4.0 have servlets of before Jakarta.
            servlet = "javax.servlet.";
            invoked = invokeFilters(liberty, servlet);
        }
        invokeFilters = invoked;
        isRequest = liberty.instance(REQUEST);
        getDispatcherType =
                liberty.method(REQUEST, servlet + "DispatcherType", "getDispatcherType");
        getMethod = liberty.method(REQUEST, STRING, "getMethod");
        getDispatch = liberty.method(REQUEST, DISPATCH, "getWebAppDispatcherContext");
        getRelativeUri = liberty.method(DISPATCH, STRING, "getRelativeUri");
        getClassLoader = liberty.method(CONTEXT, "java.lang.ClassLoader", "getClassLoader");
        isWrapper = liberty.instance(WRAPPER);
        pushServletReference =
                liberty.method(DISPATCHER, "void", "pushServletReference", WRAPPER);
        setStatus = liberty.method(RESPONSE, "void", "setStatus", "int");
        setHeader = liberty.method(RESPONSE, "void", "setHeader", STRING, STRING);
        setContentType = liberty.method(RESPONSE, "void", "setContentType", STRING);
        getWriter = liberty.method(RESPONSE, "java.io.PrintWriter", "getWriter");
    }

    private static MethodHandle invokeFilters(Container liberty, String servlet)
            throws ReflectiveOperationException {
        return liberty.own(
                "boolean",
                "invokeFilters",
                servlet + "ServletRequest",
                servlet + "ServletResponse",
                CONTEXT,
                PROCESSOR,
                "java.util.EnumSet",
                CONNECTION);
    }

    /**
     * Every other dispatch belongs to a request that is inside. So does a request that the
     * application has wrapped, whose code is not called.
     */
    @Override
    boolean isNew(Object at, Object request) throws Throwable {
        if (!(boolean) isRequest.invokeExact(request)) {
            return false;
        }
        Object type = (Object) getDispatcherType.invokeExact(request);
        return type != null && ((Enum<?>) type).name().equals("REQUEST");
    }

    /** Not known of a request that the application has wrapped: it may be on a thread of its own. */
    @Override
    boolean isWithinRequest(Object at, Object request) throws Throwable {
        if (!(boolean) isRequest.invokeExact(request)) {
            return false;
        }
        Object type = (Object) getDispatcherType.invokeExact(request);
        return type != null && isForwardOrInclude(type);
    }

    /** The one that Liberty binds to threads of the application: it stands for its own loader. */
    @Override
    ClassLoader service(Object at, Object request) throws Throwable {
        return (ClassLoader) getClassLoader.invokeExact(at);
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        return (String) getMethod.invokeExact(request);
    }

    /** Decoded, and without the context's path. */
    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        Object dispatch = (Object) getDispatch.invokeExact(request);
        return (String) getRelativeUri.invokeExact(dispatch);
    }

    /**
     * {@code sendError} would run the application's error page. When the method returns, Liberty
     * ends the response, and remembers which servlet the path has led to. It has to be told of it
     * as the guarded method does: without a mapping, every later request of the path would fail.
     */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        try {
            setStatus.invokeExact(call[2], status);
            setHeader.invokeExact(call[2], "Retry-After", retryAfterSeconds);
            setContentType.invokeExact(call[2], "text/plain");
            PrintWriter body = (PrintWriter) getWriter.invokeExact(call[2]);
            body.print(text);
        } finally {
            if ((boolean) isWrapper.invokeExact(call[4])) {
                Object dispatch = (Object) getDispatch.invokeExact(call[1]);
                pushServletReference.invokeExact(dispatch, call[4]);
            }
        }
    }

    /** The guarded method always returns false, which nobody looks at. */
    @Override
    boolean again(Object[] call) throws Throwable {
        EnumSet<?> told = (EnumSet<?>) call[5];
        boolean same =
                (boolean)
                        invokeFilters.invokeExact(
                                call[3], call[1], call[2], call[0], call[4], told, call[6]);
        return true;
    }
}
