package victim;

import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.HttpRouting;

/** Helidon 4. */
public final class HelidonShelf extends Shelf {
    public static void main(String[] args) throws Exception {
        new HelidonShelf().serve();
    }

    @Override
    int start() {
        return WebServer.builder()
                .host("127.0.0.1")
                .routing(
                        HttpRouting.builder()
                                .any((request, response) ->
                                        response.send(answer(request.path().path()))))
                .build()
                .start()
                .port();
    }
}
