package doorless;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** An application behind HTTP that has /hold, /delete, /drop and /count. */
public final class Http implements Target {
    private final String base;
    private final HttpClient client = HttpClient.newHttpClient();

    public Http(String port) {
        base = "http://127.0.0.1:" + port;
    }

    private String get(String path) throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(base + path)).timeout(Duration.ofSeconds(9)).build();
        HttpResponse<String> answer;
        try {
            answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (IOException failure) {
            throw new CutException(failure);
        }
        if (answer.statusCode() != 200) {
            throw new IOException("status " + answer.statusCode());
        }
        return answer.body();
    }

    @Override
    public void load(int number) throws IOException, InterruptedException {
        get("/hold");
    }

    @Override
    public void delete(int number) throws IOException, InterruptedException {
        get("/delete");
    }

    @Override
    public void drop() throws IOException, InterruptedException {
        get("/drop");
    }

    @Override
    public long count() throws IOException, InterruptedException {
        return Long.parseLong(get("/count").trim());
    }
}
