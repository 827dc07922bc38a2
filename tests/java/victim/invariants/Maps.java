package victim.invariants;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import victim.tenant.Filler;

/** Maps that the tenant shares with others. */
final class Maps {
    private Maps() {}

    static void addTo(Map<String, Callable<Row>> rows) {
        rows.put("compute-if-absent", Computing::new);
        rows.put("resize", Resizing::new);
    }

    private static final class Computing implements Row {
        private final Map<Integer, byte[]> concurrent = new ConcurrentHashMap<>();
        private final Map<Integer, byte[]> plain = new HashMap<>();

        @Override
        public void prepare(int trials) {
            // The lambda's linkage is another row.
            Filler.compute(concurrent, -1);
        }

        @Override
        public void during(int trial) {
            try {
                Filler.compute(concurrent, trial);
            } finally {
                Filler.compute(plain, trial);
            }
        }

        @Override
        public String after(int trial) {
            if (Filler.compute(concurrent, trial).length != 11
                    || Filler.compute(plain, trial).length != 11) {
                return "a wrong value";
            }
            if (plain.size() != plain.keySet().stream().count()
                    || concurrent.size() != concurrent.keySet().stream().count()) {
                return "a wrong size";
            }
            return null;
        }
    }

    /**
     * Most of the maps' growth happens in the tenant's calls. A map whose growth was broken off is
     * right but never grows again, and becomes a list.
     */
    private static final class Resizing implements Row {
        private static final int MAPS = 50;
        private static final Integer[] KEYS = new Integer[500];

        private ConcurrentHashMap<Integer, byte[]>[][] maps;
        private Field table;

        @SuppressWarnings({"unchecked", "rawtypes"})
        @Override
        public void prepare(int trials) throws Exception {
            // The tests' command line opens java.util.concurrent.
            table = ConcurrentHashMap.class.getDeclaredField("table");
            table.setAccessible(true);
            maps = new ConcurrentHashMap[trials][MAPS];
            for (int trial = 0; trial < trials; trial++) {
                for (int i = 0; i < MAPS; i++) {
                    maps[trial][i] = new ConcurrentHashMap<>();
                }
            }
            for (int i = 0; i < KEYS.length; i++) {
                KEYS[i] = 1_000 + i;
            }
        }

        @Override
        public void during(int trial) {
            byte[] value = new byte[1];
            for (Map<Integer, byte[]> map : maps[trial]) {
                Filler.put(map, KEYS, value);
            }
        }

        @Override
        public String after(int trial) throws IllegalAccessException {
            byte[] value = new byte[1];
            for (ConcurrentHashMap<Integer, byte[]> map : maps[trial]) {
                for (Integer key : KEYS) {
                    map.put(key, value);
                }
                map.put(0, value);
                if (map.size() != KEYS.length + 1) {
                    return "a wrong size: " + map.size();
                }
                int length = Array.getLength(table.get(map));
                if (length < KEYS.length) {
                    return map.size() + " entries in " + length + " bins";
                }
            }
            return null;
        }
    }
}
