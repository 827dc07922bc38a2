import doorless.Loader;
import doorless.Target;
import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import java.util.Enumeration;
import org.apache.activemq.ActiveMQConnectionFactory;

/** Messages in a queue that nobody reads until it is drained. */
public final class Client implements Target {
    private final Connection connection;

    private Client(Connection connection) {
        this.connection = connection;
    }

    public static void main(String[] args) throws Exception {
        ActiveMQConnectionFactory factory =
                new ActiveMQConnectionFactory(
                        "tcp://127.0.0.1:"
                                + args[0]
                                + "?jms.alwaysSyncSend=true&jms.sendTimeout=8000"
                                + "&jms.prefetchPolicy.queuePrefetch=1"
                                + "&jms.prefetchPolicy.queueBrowserPrefetch=10");
        Connection connection = factory.createConnection();
        connection.start();
        Loader.serve(new Client(connection));
    }

    private interface Work {
        long run(Session session, Queue queue) throws JMSException;
    }

    private long with(Work work) throws JMSException {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            return work.run(session, session.createQueue("held"));
        }
    }

    @Override
    public void load(int number) throws JMSException {
        with(
                (session, queue) -> {
                    try (MessageProducer producer = session.createProducer(queue)) {
                        BytesMessage message = session.createBytesMessage();
                        message.writeBytes(new byte[UNIT_BYTES]);
                        producer.send(message);
                    }
                    return 0;
                });
    }

    @Override
    public void delete(int number) throws JMSException {
        with(
                (session, queue) -> {
                    try (MessageConsumer consumer = session.createConsumer(queue)) {
                        if (consumer.receive(5_000) == null) {
                            throw new JMSException("no message came");
                        }
                    }
                    return 1;
                });
    }

    @Override
    public void drop() throws JMSException {
        with(
                (session, queue) -> {
                    try (MessageConsumer consumer = session.createConsumer(queue)) {
                        long drained = 0;
                        for (long timeout = 2_000; consumer.receive(timeout) != null; timeout = 500) {
                            drained++;
                        }
                        return drained;
                    }
                });
    }

    /** How many messages of the first so many are whole. */
    private long browse(long most) throws JMSException {
        long whole = 0;
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                QueueBrowser browser = session.createBrowser(session.createQueue("held"))) {
            Enumeration<?> messages = browser.getEnumeration();
            for (long seen = 0; seen < most && messages.hasMoreElements(); seen++) {
                BytesMessage message = (BytesMessage) messages.nextElement();
                whole += message.getBodyLength() == UNIT_BYTES ? 1 : 0;
            }
        }
        return whole;
    }

    @Override
    public void read() throws JMSException {
        browse(1);
    }

    @Override
    public long count() throws JMSException {
        return browse(Long.MAX_VALUE);
    }
}
