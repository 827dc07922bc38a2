package doorless;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.Executors;
import victim.Protocol;

/**
 * A server with a neighbour: an HTTP server in the same JVM, which has no limit. Its port is the first argument; the
 * others are those of {@code Host}, which starts the server, and serves commands itself if it is its own client.
 */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        HttpServer neighbour =
                HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        neighbour.setExecutor(
                Executors.newFixedThreadPool(
                        2,
                        work -> {
                            Thread thread = new Thread(work, "neighbour");
                            thread.setDaemon(true);
                            return thread;
                        }));
        neighbour.createContext(
                "/",
                exchange -> {
                    byte[] answer = new byte[Target.UNIT_BYTES];
                    exchange.sendResponseHeaders(200, answer.length);
                    try (OutputStream body = exchange.getResponseBody()) {
                        body.write(answer);
                    }
                });
        neighbour.start();
        Method host = Class.forName("Host").getMethod("main", String[].class);
        try {
            host.invoke(null, (Object) Arrays.copyOfRange(args, 1, args.length));
        } catch (InvocationTargetException failed) {
            failed.getCause().printStackTrace();
            System.exit(1);
        }
        serve(Map.of());
    }

    /** Until the test ends it. Servers leave threads and hooks behind. */
    static void serve(Map<String, Protocol.Command> commands) throws IOException {
        Protocol.serve(commands);
        Runtime.getRuntime().halt(0);
    }
}
