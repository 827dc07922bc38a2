package app;

import io.helidon.webserver.WebServer;

/** Routes on virtual threads. */
public final class Application {
    private Application() {}

    public static void start(int port) {
        WebServer.builder()
                .host("127.0.0.1")
                .port(port)
                .routing(
                        routing ->
                                routing.get("/hold", (request, answer) -> answer.send(Shelf.hold()))
                                        .get("/delete", (request, answer) -> answer.send(Shelf.delete()))
                                        .get("/drop", (request, answer) -> answer.send(Shelf.drop()))
                                        .get("/count", (request, answer) -> answer.send(Shelf.count())))
                .build()
                .start();
    }
}
