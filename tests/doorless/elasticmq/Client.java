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
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Messages in a queue, by SQS's query protocol. */
public final class Client implements Target {
    private static final Pattern NUMBER = Pattern.compile("<Value>(\\d+)</Value>");
    private static final Pattern RECEIPT = Pattern.compile("<ReceiptHandle>([^<]+)</ReceiptHandle>");
    private static final String QUEUE = "/000000000000/held";

    private final String base;
    private final HttpClient client = HttpClient.newHttpClient();

    private Client(String port) {
        base = "http://127.0.0.1:" + port;
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0]);
        client.post("/", "Action=CreateQueue&QueueName=held");
        Loader.serve(client);
    }

    private String post(String path, String form) throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(base + path))
                        .timeout(Duration.ofSeconds(9))
                        .header("Content-Type", "application/x-www-form-urlencoded")
                        .POST(HttpRequest.BodyPublishers.ofString(form))
                        .build();
        HttpResponse<String> answer;
        try {
            answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (IOException failure) {
            throw new CutException(failure);
        }
        if (answer.statusCode() != 200) {
            throw new IOException("status " + answer.statusCode() + ": " + answer.body());
        }
        return answer.body();
    }

    @Override
    public void load(int number) throws IOException, InterruptedException {
        post(QUEUE, "Action=SendMessage&MessageBody=" + "x".repeat(UNIT_BYTES));
    }

    @Override
    public void delete(int number) throws IOException, InterruptedException {
        Matcher receipt = RECEIPT.matcher(post(QUEUE, "Action=ReceiveMessage&WaitTimeSeconds=5"));
        if (!receipt.find()) {
            throw new IOException("no message came");
        }
        String handle = URLEncoder.encode(receipt.group(1), StandardCharsets.UTF_8);
        post(QUEUE, "Action=DeleteMessage&ReceiptHandle=" + handle);
    }

    @Override
    public void drop() throws IOException, InterruptedException {
        post(QUEUE, "Action=PurgeQueue");
    }

    @Override
    public long count() throws IOException, InterruptedException {
        String name = "ApproximateNumberOfMessages";
        Matcher number =
                NUMBER.matcher(
                        post(QUEUE, "Action=GetQueueAttributes&AttributeName.1=" + name));
        if (!number.find()) {
            throw new IOException("no number came");
        }
        return Long.parseLong(number.group(1));
    }
}
