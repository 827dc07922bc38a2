import doorless.Loader;
import doorless.Target;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Offsets of consumer groups, with the metadata that a consumer may keep there: brokers hold them in memory. */
public final class Client implements Target {
    private static final String TOPIC = "loaded";
    private static final int PARTITIONS = 8;

    private final Admin admin;

    private Client(Admin admin) {
        this.admin = admin;
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", "127.0.0.1:" + args[0]);
        properties.put("request.timeout.ms", "8000");
        properties.put("default.api.timeout.ms", "60000");
        Admin admin = Admin.create(properties);
        Set<String> topics = admin.listTopics().names().get(60, TimeUnit.SECONDS);
        if (!topics.contains(TOPIC)) {
            admin.createTopics(List.of(new NewTopic(TOPIC, PARTITIONS, (short) 1)))
                    .all()
                    .get(60, TimeUnit.SECONDS);
        }
        Loader.serve(new Client(admin));
    }

    @Override
    public void load(int number) throws Exception {
        String metadata = "x".repeat(UNIT_BYTES / PARTITIONS - 8);
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            offsets.put(new TopicPartition(TOPIC, partition), new OffsetAndMetadata(0, metadata));
        }
        admin.alterConsumerGroupOffsets("group-" + number, offsets).all().get();
    }

    @Override
    public void delete(int number) throws Exception {
        admin.deleteConsumerGroups(List.of("group-" + number)).all().get();
    }

    private List<String> groups() throws Exception {
        List<String> names = new ArrayList<>();
        for (ConsumerGroupListing group : admin.listConsumerGroups().all().get()) {
            names.add(group.groupId());
        }
        return names;
    }

    @Override
    public void drop() throws Exception {
        admin.deleteConsumerGroups(groups()).all().get();
    }

    @Override
    public long count() throws Exception {
        return groups().size();
    }
}
