import org.elasticmq.rest.sqs.SQSRestServerBuilder;

/** The server, with queues in memory. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        SQSRestServerBuilder.withInterface("127.0.0.1")
                .withPort(Integer.parseInt(args[0]))
                .start()
                .waitUntilStarted();
    }
}
