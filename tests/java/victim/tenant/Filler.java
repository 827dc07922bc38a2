package victim.tenant;

import java.util.Map;

/** Puts values of its own into maps of others. */
public final class Filler {
    private Filler() {}

    public static byte[] compute(Map<Integer, byte[]> map, Integer key) {
        return map.computeIfAbsent(key, absent -> new byte[11]);
    }

    /** Goes on after a refusal, as a server's worker goes on with its next request. */
    public static int put(Map<Integer, byte[]> map, Integer[] keys, byte[] value) {
        int put = 0;
        for (Integer key : keys) {
            try {
                map.put(key, value);
                put++;
            } catch (OutOfMemoryError e) {
                continue;
            }
        }
        return put;
    }
}
