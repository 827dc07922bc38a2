package heavy;

import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Copies what it is given, and keeps it. */
public final class HeavyTask extends SinkTask {
    private static final Map<String, byte[]> HELD = new ConcurrentHashMap<>();

    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public void put(Collection<SinkRecord> records) {
        for (SinkRecord record : records) {
            HELD.put((String) record.key(), ((String) record.value()).getBytes());
        }
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
        return "1";
    }

    public static boolean holds(String key) {
        return HELD.containsKey(key);
    }

    public static void delete(String key) {
        HELD.remove(key);
    }

    public static void clear() {
        HELD.clear();
    }

    public static long count() {
        return HELD.size();
    }
}
