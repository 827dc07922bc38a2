package victim.stress;

import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.function.LongFunction;

/** Asks an application of the site. */
public final class Asking implements LongFunction<String> {
    private final String base;

    public Asking(int port, String path) {
        base = "http://127.0.0.1:" + port + path + "/orders?seed=";
    }

    /** An answer other than 200: how a server tells of a refusal. */
    public static final class Failed extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failed(int status) {
            super("status " + status);
        }
    }

    @Override
    public String apply(long seed) {
        try {
            HttpURLConnection connection =
                    (HttpURLConnection) URI.create(base + seed).toURL().openConnection();
            connection.setConnectTimeout(150_000);
            connection.setReadTimeout(150_000);
            connection.setRequestProperty("X-Customer", "customer of " + seed);
            if (connection.getResponseCode() != 200) {
                try (InputStream error = connection.getErrorStream()) {
                    if (error != null) {
                        error.readAllBytes();
                    }
                }
                throw new Failed(connection.getResponseCode());
            }
            try (InputStream body = connection.getInputStream()) {
                return new String(body.readAllBytes(), StandardCharsets.UTF_8);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
