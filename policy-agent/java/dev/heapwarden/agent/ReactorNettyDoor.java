package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;

/**
 * The door of Reactor Netty 1, also below Spring WebFlux: at {@code HttpServer.HttpServerHandle.onStateChange}. It
 * gets the new state, the connection, which is the request and its response, and the handle.
 */
final class ReactorNettyDoor extends EventLoopDoor {
    private static final String CONNECTION = "reactor.netty.Connection";
    private static final String STATE = "reactor.netty.ConnectionObserver$State";
    private static final String EXCHANGE = "reactor.netty.http.server.HttpServerOperations";
    private static final String OUTBOUND = "reactor.netty.NettyOutbound";
    private static final String RESPONSE = "reactor.netty.http.server.HttpServerResponse";
    private static final String PUBLISHER = "org.reactivestreams.Publisher";
    private static final String MONO = "reactor.core.publisher.Mono";
    private static final String SUBSCRIBER = "reactor.core.CoreSubscriber";
    private static final String TEXT = "java.lang.CharSequence";

    private final MethodHandle onStateChange;
    private final MethodHandle isExchange;
    private final NettyRequest requests;
    private final MethodHandle setStatus;
    private final MethodHandle header;
    private final MethodHandle just;
    private final MethodHandle sendString;
    private final MethodHandle then;
    private final MethodHandle disposeSubscriber;
    private final MethodHandle subscribe;

    ReactorNettyDoor(Container reactor) throws ReflectiveOperationException {
        super(reactor);
        onStateChange = reactor.own("void", "onStateChange", CONNECTION, STATE);
        isExchange = reactor.instance(EXCHANGE);
        requests = new NettyRequest(reactor, EXCHANGE);
        setStatus = reactor.method(RESPONSE, RESPONSE, "status", "int");
        header = reactor.method(RESPONSE, RESPONSE, "header", TEXT, TEXT);
        just = reactor.function(MONO, MONO, "just", "java.lang.Object");
        sendString = reactor.method(OUTBOUND, OUTBOUND, "sendString", PUBLISHER);
        then = reactor.method(OUTBOUND, MONO, "then");
        disposeSubscriber = reactor.method(EXCHANGE, SUBSCRIBER, "disposeSubscriber");
        subscribe = reactor.method(MONO, "void", "subscribe", SUBSCRIBER);
    }

    @Override
    boolean isNew(Object at, Object request) throws Throwable {
        return at instanceof Enum
                && ((Enum<?>) at).name().equals("REQUEST_RECEIVED")
                && (boolean) isExchange.invokeExact(request);
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        return requests.method(request);
    }

    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        return requests.path(request);
    }

    /** As the handle itself does with what the program's handler returns. */
    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        Object exchange = call[1];
        Object same = (Object) setStatus.invokeExact(exchange, status);
        same = (Object) header.invokeExact(same, (CharSequence) "Retry-After", (CharSequence) retryAfterSeconds);
        same = (Object) header.invokeExact(same, (CharSequence) "Content-Type", (CharSequence) "text/plain");
        Object body = (Object) just.invokeExact((Object) text);
        Object sent = (Object) sendString.invokeExact(exchange, body);
        Object done = (Object) then.invokeExact(sent);
        Object subscriber = (Object) disposeSubscriber.invokeExact(exchange);
        subscribe.invokeExact(done, subscriber);
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        onStateChange.invokeExact(call[2], call[1], call[0]);
        return true;
    }
}
