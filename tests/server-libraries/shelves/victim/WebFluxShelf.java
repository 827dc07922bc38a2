package victim;

import org.springframework.http.server.reactive.HttpHandler;
import org.springframework.http.server.reactive.ReactorHttpHandlerAdapter;
import org.springframework.web.reactive.function.server.RequestPredicates;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.netty.http.server.HttpServer;

/** Spring WebFlux on Reactor Netty. */
public final class WebFluxShelf extends Shelf {
    public static void main(String[] args) throws Exception {
        new WebFluxShelf().serve();
    }

    @Override
    int start() {
        HttpHandler handler =
                RouterFunctions.toHttpHandler(
                        RouterFunctions.route(
                                RequestPredicates.all(),
                                request -> ServerResponse.ok().bodyValue(answer(request.path()))));
        return HttpServer.create()
                .host("127.0.0.1")
                .port(0)
                .handle(new ReactorHttpHandlerAdapter(handler))
                .bindNow()
                .port();
    }
}
