package victim;

import io.micronaut.context.ApplicationContext;
import io.micronaut.http.HttpRequest;
import io.micronaut.http.annotation.Body;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.http.annotation.Post;
import io.micronaut.runtime.server.EmbeddedServer;
import java.util.Map;

/** Micronaut on its own server. */
public final class MicronautShelf extends Shelf {
    private static final MicronautShelf SHELF = new MicronautShelf();

    public static void main(String[] args) throws Exception {
        SHELF.serve();
    }

    @Override
    int start() {
        Map<String, Object> settings =
                Map.of("micronaut.server.port", -1, "micronaut.server.host", "127.0.0.1");
        return ApplicationContext.run(EmbeddedServer.class, settings).getPort();
    }

    /** Its routes. */
    @Controller
    static class Routes {
        @Get("/{+path}")
        String get(HttpRequest<?> request) {
            return SHELF.answer(request.getPath());
        }

        @Post("/{+path}")
        String post(HttpRequest<?> request, @Body byte[] body) {
            return SHELF.answer(request.getPath());
        }
    }
}
