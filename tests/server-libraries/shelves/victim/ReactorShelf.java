package victim;

import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.netty.http.server.HttpServer;

/** Reactor Netty alone. */
public final class ReactorShelf extends Shelf {
    public static void main(String[] args) throws Exception {
        new ReactorShelf().serve();
    }

    @Override
    int start() {
        return HttpServer.create()
                .host("127.0.0.1")
                .port(0)
                .handle(
                        (request, response) ->
                                response.sendString(
                                        Mono.fromSupplier(() -> answer("/" + request.path()))
                                                .subscribeOn(Schedulers.boundedElastic())))
                .bindNow()
                .port();
    }
}
