package dev.heapwarden.agent;

import java.lang.invoke.MethodHandle;

/**
 * The door of Micronaut's server on Netty, from 4.8 on: at {@code RoutingInBoundHandler.accept}. It gets the handler,
 * the request of Netty, the body, where the answer goes, and the context of the channel.
 */
final class MicronautDoor extends EventLoopDoor {
    private static final String CONTEXT = "io.netty.channel.ChannelHandlerContext";
    private static final String REQUEST = "io.netty.handler.codec.http.HttpRequest";
    private static final String RESPONSE = "io.netty.handler.codec.http.HttpResponse";
    private static final String BODY = "io.micronaut.http.body.CloseableByteBody";
    private static final String ANY_BODY = "io.micronaut.http.body.ByteBody";
    private static final String MADE_BODY = "io.micronaut.http.netty.body.AvailableNettyByteBody";
    private static final String ACCESS = "io.micronaut.http.server.netty.handler.OutboundAccess";

    private final MethodHandle accept;
    private final NettyRequest requests;
    private final MethodHandle close;
    private final MethodHandle body;
    private final MethodHandle write;
    private final MethodHandle writeHead;
    private final NettyAnswer answers;

    MicronautDoor(Container micronaut) throws ReflectiveOperationException {
        super(micronaut);
        accept = micronaut.own("void", "accept", CONTEXT, REQUEST, BODY, ACCESS);
        requests = new NettyRequest(micronaut, REQUEST);
        close = micronaut.method(BODY, "void", "close");
        body = micronaut.made(MADE_BODY, "io.netty.buffer.ByteBuf");
        write = micronaut.method(ACCESS, "void", "write", RESPONSE, ANY_BODY);
        writeHead = micronaut.method(ACCESS, "void", "writeHeadResponse", RESPONSE);
        answers = new NettyAnswer(micronaut);
    }

    @Override
    String method(Object at, Object request) throws Throwable {
        return requests.method(request);
    }

    @Override
    CharSequence path(Object at, Object request) throws Throwable {
        return requests.path(request);
    }

    @Override
    void answer(Object[] call, int status, String retryAfterSeconds, String text)
            throws Throwable {
        close.invokeExact(call[2]);
        Object none = answers.bytes("");
        Object response = answers.made(status, retryAfterSeconds, none, text);
        if (method(call[0], call[1]).equals("HEAD")) {
            writeHead.invokeExact(call[3], response);
            return;
        }
        Object bytes = (Object) body.invokeExact(answers.bytes(text));
        write.invokeExact(call[3], response, bytes);
    }

    @Override
    boolean again(Object[] call) throws Throwable {
        accept.invokeExact(call[0], call[4], call[1], call[2], call[3]);
        return true;
    }
}
