package guest;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.SourceConnector;

/** A connector that Kafka Connect finds in a plugin; it is never started. */
public final class Source extends SourceConnector {
    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public void stop() {}

    @Override
    public Class<? extends Task> taskClass() {
        return null;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return List.of();
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1.0.0";
    }
}
