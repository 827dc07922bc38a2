import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;

/** A broker that keeps its messages in memory, and whose own bound is far away. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.getSystemUsage().getMemoryUsage().setLimit(512L << 20);
        PolicyEntry queues = new PolicyEntry();
        queues.setMaxBrowsePageSize(1_000_000);
        PolicyMap policies = new PolicyMap();
        policies.setDefaultEntry(queues);
        broker.setDestinationPolicy(policies);
        broker.addConnector("tcp://127.0.0.1:" + args[0]);
        broker.start();
        broker.waitUntilStarted();
    }
}
