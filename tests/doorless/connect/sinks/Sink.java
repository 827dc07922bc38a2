package sinks;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** A connector with one task, of the class that its setting {@code task} names. */
public final class Sink extends SinkConnector {
    private String task;

    @Override
    public void start(Map<String, String> settings) {
        task = settings.get("task");
    }

    @Override
    public Class<? extends Task> taskClass() {
        try {
            return Class.forName(task).asSubclass(Task.class);
        } catch (ClassNotFoundException missing) {
            throw new IllegalStateException(missing);
        }
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
