package tenant;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.LongFunction;
import java.util.stream.Collectors;

/** Loaded anew for every use. */
public final class Fresh implements LongFunction<String> {
    private static final Map<String, Integer> TABLE = new HashMap<>();

    static {
        for (int i = 0; i < 30; i++) {
            TABLE.put("entry " + i, i * i);
        }
    }

    private record Point(long x, String label) {}

    private enum Size {
        SMALL,
        LARGE {
            @Override
            String text() {
                return "very large";
            }
        };

        String text() {
            return "rather " + name();
        }
    }

    @Override
    public String apply(long seed) {
        BiFunction<Long, String, Point> make = Point::new;
        Point point = make.apply(seed, "p" + seed);
        Size size = seed % 2 == 0 ? Size.SMALL : Size.LARGE;
        String kind =
                switch (size) {
                    case SMALL -> "s" + seed;
                    case LARGE -> 'l' + Long.toString(seed) + true;
                };
        return point + size.text() + kind + point.equals(new Point(seed, "p" + seed))
                + List.of(1, 2, 3).stream().map(i -> i + kind).collect(Collectors.toList())
                + TABLE.values().stream().mapToInt(i -> i).sum();
    }
}
