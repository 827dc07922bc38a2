import java.util.Map;
import org.elasticmq.rest.sqs.SQSRestServerBuilder;
import victim.Protocol;

/** The server, with queues in memory. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        SQSRestServerBuilder.withInterface("127.0.0.1")
                .withPort(Integer.parseInt(args[0]))
                .start()
                .waitUntilStarted();
        Protocol.serve(Map.of());
        Runtime.getRuntime().halt(0);
    }
}
