package victim;

import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServer;
import io.vertx.ext.web.Router;
import java.util.concurrent.TimeUnit;

/** Vert.x Web: half of the paths are served on the event loop, {@code /hold} on a thread that may block. */
public final class VertxShelf extends Shelf {
    public static void main(String[] args) throws Exception {
        new VertxShelf().serve();
    }

    @Override
    int start() throws Exception {
        Vertx vertx = Vertx.vertx();
        Router router = Router.router(vertx);
        router.route("/hold")
                .blockingHandler(context -> context.end(answer(context.request().path())));
        router.route().handler(context -> context.end(answer(context.request().path())));
        HttpServer server = vertx.createHttpServer().requestHandler(router);
        return server.listen(0, "127.0.0.1")
                .toCompletionStage()
                .toCompletableFuture()
                .get(60, TimeUnit.SECONDS)
                .actualPort();
    }
}
