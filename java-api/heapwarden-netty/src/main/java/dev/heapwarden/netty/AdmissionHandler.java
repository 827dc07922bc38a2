package dev.heapwarden.netty;

import dev.heapwarden.Admission;
import dev.heapwarden.Heapwarden;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpStatusClass;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * Answers HTTP requests 503 with {@code Retry-After} while the account of the event loop's thread is over
 * its limit, before the handlers behind it see them. One request at a time goes in all the same, as a
 * probe.
 *
 * <p>It belongs into the pipeline behind the {@code HttpServerCodec}, before an aggregator and before the
 * program's own handlers; one for each channel. The account is that of the context class loader of the
 * event loop's thread, which is that of the thread that started the loop. A program whose tenants are
 * scopes asks by itself, where it knows the tenant.
 *
 * <p>A client may send requests without waiting for answers (pipelining). Then an answer of this handler
 * waits until the program has answered what came before. A request with a body that is turned away has
 * its connection closed once the answer is written and the body has arrived, or 1 MiB of it.
 *
 * <p>Runs on the event loop; never waits. Without the agent, and in mode {@code observe}, every request
 * goes in.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // The annotations of nullness: who uses this need not have them.
public final class AdmissionHandler extends ChannelDuplexHandler {
    /** Of a body that is dropped: then the connection is closed. */
    private static final int MAX_DROPPED_BYTES = 1 << 20;

    /** Requests that went in and are not answered yet. */
    private int unanswered;

    /** The one of this connection that is inside as a probe, if there is one. */
    private @Nullable Admission probe;

    /** How many answers are due before that of the probe. */
    private int beforeProbe;

    /** The answer of a response that is being written is an interim one, such as 100. */
    private boolean interim;

    /** Whether the incoming messages belong to a request that was turned away. */
    private boolean dropping;

    /** The answer to it, until it can be written. */
    private @Nullable FullHttpResponse refusal;

    /** The connection is to be closed after the refusal: nothing else is let in. */
    private boolean closing;

    private int droppedBytes;

    /** For one channel. */
    public AdmissionHandler() {}

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (message instanceof HttpRequest && !dropping && !closing) {
            ask(context, (HttpRequest) message);
        }
        if (!dropping && !closing) {
            context.fireChannelRead(message);
            return;
        }
        try {
            drop(context, message);
        } finally {
            ReferenceCountUtil.release(message);
        }
    }

    private void ask(ChannelHandlerContext context, HttpRequest request) {
        if (!Heapwarden.admits()) {
            Admission admission = Heapwarden.admission(request.method().name(), path(request.uri()));
            if (!admission.isGranted()) {
                turnAway(context, request, admission);
                return;
            }
            if (admission.isProbe()) {
                endProbe();
                probe = admission;
                beforeProbe = unanswered;
            }
        }
        unanswered++;
    }

    private void turnAway(
            ChannelHandlerContext context, HttpRequest request, Admission admission) {
        boolean whole =
                request instanceof LastHttpContent
                        || !HttpUtil.isTransferEncodingChunked(request)
                                && HttpUtil.getContentLength(request, 0L) == 0;
        boolean open = whole && unanswered == 0 && HttpUtil.isKeepAlive(request);
        byte[] text = (admission.message() + "\n").getBytes(StandardCharsets.US_ASCII);
        boolean isHead = HttpMethod.HEAD.equals(request.method());
        FullHttpResponse response =
                new DefaultFullHttpResponse(
                        HttpVersion.HTTP_1_1,
                        HttpResponseStatus.SERVICE_UNAVAILABLE,
                        isHead ? Unpooled.EMPTY_BUFFER : Unpooled.wrappedBuffer(text));
        response.headers()
                .set(HttpHeaderNames.RETRY_AFTER, Long.toString(admission.retryAfterSeconds()))
                .set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.TEXT_PLAIN)
                .setInt(HttpHeaderNames.CONTENT_LENGTH, text.length);
        if (!open) {
            response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
        } else if (!request.protocolVersion().isKeepAliveDefault()) {
            response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.KEEP_ALIVE);
        }
        // Who asked whether to send a body sends none.
        dropping = !HttpUtil.is100ContinueExpected(request);
        closing = !open;
        refusal = response;
        answer(context);
    }

    /** Writes the refusal if it is its turn. */
    private void answer(ChannelHandlerContext context) {
        FullHttpResponse response = refusal;
        if (response != null && unanswered == 0) {
            refusal = null;
            context.writeAndFlush(response);
            closeIfDone(context);
        }
    }

    /** A part of a request that was turned away, or of one behind it. */
    private void drop(ChannelHandlerContext context, Object message) {
        if (message instanceof HttpContent) {
            droppedBytes += ((HttpContent) message).content().readableBytes();
        }
        if (message instanceof LastHttpContent || droppedBytes > MAX_DROPPED_BYTES) {
            dropping = false;
            droppedBytes = 0;
            closeIfDone(context);
        }
    }

    private void closeIfDone(ChannelHandlerContext context) {
        if (closing && !dropping && refusal == null) {
            context.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
        }
    }

    @Override
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
        if (message instanceof HttpResponse) {
            HttpResponseStatus status = ((HttpResponse) message).status();
            interim =
                    status.codeClass() == HttpStatusClass.INFORMATIONAL
                            && !HttpResponseStatus.SWITCHING_PROTOCOLS.equals(status);
        }
        boolean last = message instanceof LastHttpContent && !interim;
        context.write(message, promise);
        if (last && unanswered > 0) {
            answered(context);
        }
    }

    private void answered(ChannelHandlerContext context) {
        unanswered--;
        if (probe != null && beforeProbe-- == 0) {
            endProbe();
        }
        answer(context);
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        end();
        context.fireChannelInactive();
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        end();
    }

    private void end() {
        endProbe();
        FullHttpResponse response = refusal;
        refusal = null;
        if (response != null) {
            response.release();
        }
    }

    private void endProbe() {
        Admission ending = probe;
        probe = null;
        if (ending != null) {
            ending.close();
        }
    }

    /** The path of a target in any of its forms, without a query. */
    private static String path(String target) {
        int from = 0;
        if (!target.startsWith("/")) {
            int authority = target.indexOf("://");
            from = authority < 0 ? 0 : target.indexOf('/', authority + 3);
            if (from < 0) {
                return "/";
            }
        }
        int query = target.indexOf('?', from);
        return query < 0 ? target.substring(from) : target.substring(from, query);
    }
}
