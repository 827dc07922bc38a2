package victim;

import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;

/** How many objects of which size are held: the truth that a test compares with. */
final class HeldObjects {
    private final Map<Long, Long> objectsBySize = new TreeMap<>();

    void add(long[] sizes, long times) {
        for (long size : sizes) {
            objectsBySize.merge(size, times, Long::sum);
        }
    }

    /** {@code "truth NAME BYTES OBJECTS SIZE:COUNT,…"}. */
    String line(String name) {
        long bytes = 0;
        long objects = 0;
        StringJoiner parts = new StringJoiner(",");
        for (Map.Entry<Long, Long> entry : objectsBySize.entrySet()) {
            bytes += entry.getKey() * entry.getValue();
            objects += entry.getValue();
            parts.add(entry.getKey() + ":" + entry.getValue());
        }
        return "truth " + name + " " + bytes + " " + objects + " " + parts;
    }
}
