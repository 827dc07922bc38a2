package heavy;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** A connector whose task holds what it is given. */
public final class HeavySink extends SinkConnector {
    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public Class<? extends Task> taskClass() {
        return HeavyTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return Collections.nCopies(1, Map.of());
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1";
    }
}
