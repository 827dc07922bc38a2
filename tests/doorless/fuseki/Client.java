import doorless.CutException;
import doorless.Loader;
import doorless.Target;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Graphs that are loaded whole, of some 20 MiB each. */
public final class Client implements Target {
    private static final int TRIPLES = 20_000;

    private final String base;
    private final HttpClient client = HttpClient.newHttpClient();

    private Client(String port) {
        base = "http://127.0.0.1:" + port + "/held";
    }

    public static void main(String[] args) throws Exception {
        Loader.serve(new Client(args[0]));
    }

    private String send(String path, String method, String type, String body)
            throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(base + path))
                        .timeout(Duration.ofSeconds(9))
                        .header("Content-Type", type)
                        .header("Accept", "text/csv")
                        .method(
                                method,
                                body.isEmpty()
                                        ? HttpRequest.BodyPublishers.noBody()
                                        : HttpRequest.BodyPublishers.ofString(body))
                        .build();
        HttpResponse<String> answer;
        try {
            answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (IOException failure) {
            throw new CutException(failure);
        }
        if (answer.statusCode() / 100 != 2) {
            throw new IOException("status " + answer.statusCode() + ": " + answer.body());
        }
        return answer.body();
    }

    /** By GET: a load that was turned away ends its connection, and a client sends only a GET again. */
    private String query(String text) throws IOException, InterruptedException {
        String query = URLEncoder.encode(text, StandardCharsets.UTF_8);
        return send("/sparql?query=" + query, "GET", "application/sparql-query", "");
    }

    private void update(String text) throws IOException, InterruptedException {
        send("/update", "POST", "application/sparql-update", text);
    }

    @Override
    public void load(int number) throws IOException, InterruptedException {
        StringBuilder triples = new StringBuilder(TRIPLES * 64);
        for (int i = 0; i < TRIPLES; i++) {
            triples.append("<urn:s:").append(number).append(':').append(i);
            triples.append("> <urn:p> \"value ").append(number).append(' ').append(i).append("\" .\n");
        }
        String graph = URLEncoder.encode("urn:g:" + number, StandardCharsets.UTF_8);
        send("/data?graph=" + graph, "POST", "application/n-triples", triples.toString());
    }

    @Override
    public void delete(int number) throws IOException, InterruptedException {
        update("DROP GRAPH <urn:g:" + number + ">");
    }

    @Override
    public void drop() throws IOException, InterruptedException {
        update("CLEAR ALL");
    }

    @Override
    public void read() throws IOException, InterruptedException {
        query("SELECT ?o { GRAPH ?g { <urn:s:1:1> <urn:p> ?o } }");
    }

    /** Of those that have all their triples. */
    @Override
    public long count() throws IOException, InterruptedException {
        String graphs =
                query(
                        "SELECT ?g { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g HAVING (COUNT(*) = "
                                + TRIPLES
                                + ")");
        // The first line has the names of the columns.
        return graphs.lines().count() - 1;
    }
}
