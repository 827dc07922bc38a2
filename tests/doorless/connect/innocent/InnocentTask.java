package innocent;

import java.util.Collection;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Counts. */
public final class InnocentTask extends SinkTask {
    private static final AtomicLong SEEN = new AtomicLong();

    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public void put(Collection<SinkRecord> records) {
        SEEN.addAndGet(records.size());
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
        return "1";
    }

    public static long seen() {
        return SEEN.get();
    }
}
