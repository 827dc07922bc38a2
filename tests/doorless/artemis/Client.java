import doorless.Loader;
import doorless.Target;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.client.ActiveMQClient;
import org.apache.activemq.artemis.api.core.client.ClientConsumer;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientProducer;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSessionFactory;
import org.apache.activemq.artemis.api.core.client.ServerLocator;

/** Messages in a queue that nobody reads until it is drained. */
public final class Client implements Target {
    private static final String QUEUE = "held";

    private final String url;

    private Client(String port) {
        url = "tcp://127.0.0.1:" + port + "?callTimeout=8000&blockOnNonDurableSend=true";
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0]);
        client.with(
                session -> {
                    session.createQueue(
                            QueueConfiguration.of(QUEUE)
                                    .setRoutingType(RoutingType.ANYCAST)
                                    .setDurable(false));
                    return 0L;
                });
        Loader.serve(client);
    }

    private interface Work {
        long run(ClientSession session) throws Exception;
    }

    private long with(Work work) throws Exception {
        try (ServerLocator locator = ActiveMQClient.createServerLocator(url);
                ClientSessionFactory factory = locator.createSessionFactory();
                ClientSession session = factory.createSession()) {
            session.start();
            return work.run(session);
        }
    }

    @Override
    public void load(int number) throws Exception {
        with(
                session -> {
                    try (ClientProducer producer = session.createProducer(QUEUE)) {
                        ClientMessage message = session.createMessage(false);
                        message.getBodyBuffer().writeBytes(new byte[UNIT_BYTES]);
                        producer.send(message);
                    }
                    return 0;
                });
    }

    @Override
    public void delete(int number) throws Exception {
        with(
                session -> {
                    try (ClientConsumer consumer = session.createConsumer(QUEUE)) {
                        ClientMessage message = consumer.receive(5_000);
                        if (message == null) {
                            throw new IllegalStateException("no message came");
                        }
                        message.acknowledge();
                    }
                    session.commit();
                    return 1;
                });
    }

    @Override
    public void drop() throws Exception {
        with(
                session -> {
                    long drained = 0;
                    try (ClientConsumer consumer = session.createConsumer(QUEUE)) {
                        ClientMessage message = consumer.receive(2_000);
                        while (message != null) {
                            message.acknowledge();
                            drained++;
                            message = consumer.receive(500);
                        }
                    }
                    session.commit();
                    return drained;
                });
    }

    @Override
    public long count() throws Exception {
        return with(
                session ->
                        session.queueQuery(
                                        org.apache.activemq.artemis.api.core.SimpleString.of(QUEUE))
                                .getMessageCount());
    }
}
