package app;

import java.util.function.Supplier;
import org.springframework.http.server.reactive.HttpHandler;
import org.springframework.http.server.reactive.ReactorHttpHandlerAdapter;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;
import reactor.netty.http.server.HttpServer;

/** Functional routes on Reactor Netty. */
public final class Application {
    private Application() {}

    public static void start(int port) {
        RouterFunction<ServerResponse> routes =
                RouterFunctions.route()
                        .GET("/hold", request -> answer(Shelf::hold))
                        .GET("/delete", request -> answer(Shelf::delete))
                        .GET("/drop", request -> answer(Shelf::drop))
                        .GET("/count", request -> answer(Shelf::count))
                        .build();
        HttpHandler handler = RouterFunctions.toHttpHandler(routes);
        HttpServer.create()
                .host("127.0.0.1")
                .port(port)
                .handle(new ReactorHttpHandlerAdapter(handler))
                .bindNow();
    }

    private static Mono<ServerResponse> answer(Supplier<String> work) {
        return Mono.fromSupplier(work).flatMap(text -> ServerResponse.ok().bodyValue(text));
    }
}
