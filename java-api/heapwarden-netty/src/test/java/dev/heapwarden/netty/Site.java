package dev.heapwarden.netty;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpVersion;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** A Netty server that belongs to a service: its threads have the service's context class loader. */
final class Site implements AutoCloseable {
    final List<byte[]> held = Collections.synchronizedList(new ArrayList<>());
    final AtomicInteger served = new AtomicInteger();

    /** Answers a request of {@code /wait}, once there is one. */
    final AtomicReference<Runnable> waiting = new AtomicReference<>();

    private final EventLoopGroup group;
    private final Channel listener;
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /**
     * A server.
     *
     * @param service the name of its service; an account, if the agent is there
     */
    Site(String service) throws InterruptedException {
        ClassLoader loader =
                new URLClassLoader(service, new URL[0], Site.class.getClassLoader());
        group =
                new NioEventLoopGroup(
                        1,
                        task -> {
                            Thread thread = new Thread(task, service);
                            thread.setContextClassLoader(loader);
                            return thread;
                        });
        ChannelInitializer<SocketChannel> pipeline =
                new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        channel.pipeline()
                                .addLast(new HttpServerCodec())
                                .addLast(new AdmissionHandler())
                                .addLast(new HttpObjectAggregator(1 << 16))
                                .addLast(new Shelf());
                    }
                };
        listener =
                new ServerBootstrap()
                        .group(group)
                        .channel(NioServerSocketChannel.class)
                        .childHandler(pipeline)
                        .bind(new InetSocketAddress("127.0.0.1", 0))
                        .sync()
                        .channel();
    }

    int port() {
        return ((InetSocketAddress) listener.localAddress()).getPort();
    }

    HttpResponse<String> send(String method, String path, int body) throws Exception {
        HttpRequest.BodyPublisher content =
                body == 0
                        ? HttpRequest.BodyPublishers.noBody()
                        : HttpRequest.BodyPublishers.ofByteArray(new byte[body]);
        HttpRequest request =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port() + path))
                        .method(method, content)
                        .timeout(Duration.ofMinutes(1))
                        .build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }

    int get(String path) throws Exception {
        return send("GET", path, 0).statusCode();
    }

    @Override
    public void close() {
        listener.close();
        group.shutdownGracefully();
    }

    private final class Shelf extends SimpleChannelInboundHandler<FullHttpRequest> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            served.incrementAndGet();
            switch (request.uri()) {
                case "/hold":
                    for (int kib = 0; kib < 1_024; kib++) {
                        held.add(new byte[1_024]);
                    }
                    break;
                case "/drop":
                    held.clear();
                    break;
                case "/wait":
                    waiting.set(() -> answer(context, "waited"));
                    return;
                default:
                    break;
            }
            answer(context, "done");
        }

        private void answer(ChannelHandlerContext context, String text) {
            FullHttpResponse response =
                    new DefaultFullHttpResponse(
                            HttpVersion.HTTP_1_1,
                            HttpResponseStatus.OK,
                            Unpooled.copiedBuffer(text, StandardCharsets.US_ASCII));
            response.headers().setInt(HttpHeaderNames.CONTENT_LENGTH, text.length());
            context.writeAndFlush(response);
        }
    }
}
