import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;

/** A broker that keeps its messages in memory. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Configuration configuration = new ConfigurationImpl();
        configuration.setPersistenceEnabled(false);
        configuration.setSecurityEnabled(false);
        configuration.setGlobalMaxSize(10L << 30);
        configuration.addAcceptorConfiguration("tcp", "tcp://127.0.0.1:" + args[0]);
        configuration.addAddressSetting(
                "#", new AddressSettings().setMaxSizeBytes(-1).setAutoDeleteQueues(false));
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        broker.setConfiguration(configuration);
        broker.start();
    }
}
