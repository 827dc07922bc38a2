package victim.ways.collections;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import victim.ways.Way;

/** Objects of the JDK on behalf of the program: boxes, entries, iterators, lambdas that capture. */
public final class Collections implements Way {
    @Override
    public Object run(int rounds) {
        Map<Integer, Object> last = new HashMap<>();
        for (int i = 0; i < rounds; i++) {
            Map<Integer, Object> map = new HashMap<>();
            List<Long> list = new ArrayList<>();
            for (int key = 0; key < 20; key++) {
                int number = 1000 * key + i;
                Supplier<Object> supplier = () -> number;
                map.put(number, supplier);
                list.add((long) number);
            }
            long sum = 0;
            for (long each : list) {
                sum += each;
            }
            map.put(-1, sum);
            map.put(-2, new TreeMap<>(map).firstKey());
            map.put(-3, map.values().stream().filter(x -> x instanceof Long).count());
            last = map;
        }
        return last;
    }
}
