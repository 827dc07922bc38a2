package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;

/**
 * The door of programs that serve HTTP with Netty alone: at {@code SimpleChannelInboundHandler.channelRead}. It gets
 * the handler, the message, and the handler's context.
 *
 * <p>A request is asked if it is whole, as an aggregator passes it on: of one that comes in parts, the rest would
 * reach the program.
 */
final class NettyDoor extends EventLoopDoor {
    private static final String CONTEXT = "io.netty.channel.ChannelHandlerContext";
    private static final String REQUEST = "io.netty.handler.codec.http.FullHttpRequest";
    private static final String HEAD = "io.netty.handler.codec.http.HttpRequest";
    private static final String MESSAGE = "io.netty.handler.codec.http.HttpMessage";
    private static final String HEADERS = "io.netty.handler.codec.http.HttpHeaders";
    private static final String FUTURE = "io.netty.channel.ChannelFuture";
    private static final String LISTENER = "io.netty.util.concurrent.GenericFutureListener";
    private static final String STRING = "java.lang.String";
    private static final String ANY = "java.lang.Object";

    /** The stream of a request that came by HTTP/2, which its response needs. */
    private static final String STREAM = "x-http2-stream-id";

    private final MethodHandle channelRead;
    private final MethodHandle isRequest;
    private final NettyRequest requests;
    private final MethodHandle headers;
    private final MethodHandle get;
    private final MethodHandle writeAndFlush;
    private final MethodHandle addListener;
    private final MethodHandle release;
    private final Object closes;
    private final NettyAnswer answers;

    NettyDoor(Container netty) throws ReflectiveOperationException {
        super(netty);
        channelRead = netty.own("void", "channelRead", CONTEXT, ANY);
        isRequest = netty.instance(REQUEST);
        requests = new NettyRequest(netty, HEAD);
        headers = netty.method(MESSAGE, HEADERS, "headers");
        get = netty.method(HEADERS, STRING, "get", STRING);
        writeAndFlush = netty.method(CONTEXT, FUTURE, "writeAndFlush", ANY);
        addListener = netty.method(FUTURE, FUTURE, "addListener", LISTENER);
        String counted = "io.netty.util.ReferenceCountUtil";
        release = netty.function(counted, "boolean", "release", ANY);
        String listener = "io.netty.channel.ChannelFutureListener";
        closes = netty.constant(listener, listener, "CLOSE");
        answers = new NettyAnswer(netty);
    }

    @Override
    boolean isNew(Object at, Object request) throws Throwable {
        return (boolean) isRequest.invokeExact(request);
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        return requests.method(request);
    }

    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        return requests.path(request);
    }

    /**
     * Through the handlers between this one and the network, as the program's own answer would go. It is the
     * connection's last: an earlier request may be unanswered yet, for which it is taken then, and no more than that.
     */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        Object request = call[1];
        try {
            boolean isHead = method(call[0], request).equals("HEAD");
            Object body = answers.bytes(isHead ? "" : text);
            Object response = answers.made(status, retryAfterSeconds, body, text);
            Object fields = (Object) headers.invokeExact(request);
            String stream = (String) get.invokeExact(fields, STREAM);
            if (stream != null) {
                answers.put(response, STREAM, stream);
            } else {
                answers.put(response, "Connection", "close");
            }
            Object written = (Object) writeAndFlush.invokeExact(call[2], response);
            if (stream == null) {
                written = (Object) addListener.invokeExact(written, closes);
            }
        } finally {
            boolean isGone = (boolean) release.invokeExact(request);
        }
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        channelRead.invokeExact(call[0], call[2], call[1]);
        return true;
    }
}
