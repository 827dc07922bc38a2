package victim.ways.copies;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import victim.ways.Way;

/** Clones and copies, which native code or the compiler makes. */
public final class Copies implements Way {
    private static final class Copied implements Cloneable {
        private long number;

        @Override
        public Copied clone() throws CloneNotSupportedException {
            return (Copied) super.clone();
        }

        Copied copy(long next) throws CloneNotSupportedException {
            Copied copy = clone();
            copy.number = next + number;
            return copy;
        }
    }

    private final int[] ints = new int[17];
    private final String[] strings = {"a", "b", "c"};
    private final Object[] objects = {"a", 'b', "c", 1};
    private final int[][] nested = {{1}, {2, 3}};
    private final List<Object> list = new ArrayList<>(Arrays.asList(objects));
    private final ArrayDeque<Object> deque = new ArrayDeque<>(list);

    @Override
    public Object run(int rounds) throws Exception {
        Copied copied = new Copied();
        Object last = null;
        for (int i = 0; i < rounds; i++) {
            int length = i % 13;
            last =
                    new Object[] {
                        ints.clone(),
                        strings.clone(),
                        nested.clone(),
                        Arrays.copyOf(ints, length),
                        Arrays.copyOf(strings, length),
                        Arrays.copyOf(objects, length),
                        Arrays.copyOf(objects, 3, Object[].class),
                        Arrays.copyOf(strings, length, Object[].class),
                        Arrays.copyOfRange(strings, 1, 3),
                        Arrays.copyOfRange(ints, 2, 5),
                        list.toArray(),
                        list.toArray(new Object[0]),
                        deque.clone(),
                        new ArrayList<>(list),
                    };
            copied = copied.copy(i);
        }
        return last == null ? copied : last;
    }
}
