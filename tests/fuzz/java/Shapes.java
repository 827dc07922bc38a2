import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Source of the bytecode that moves when code is inserted. Its class files, of several compilers and releases, are
 * seeds of the fuzz target {@code class_file}.
 */
class Shapes {
    private final Object made;
    private int[][] table;

    Shapes() {
        this(new ArrayList<Object>());
    }

    Shapes(Object made) {
        super();
        this.made = made;
    }

    /** Before the other constructor is called it makes objects, branches and may throw. */
    Shapes(boolean empty, int size) {
        this(empty ? new Object() : new Shapes(new int[size]));
        this.table = new int[size][3];
    }

    static int dense(int chosen) {
        switch (chosen) {
            case 1: return new int[1].length;
            case 2: return new long[2].length;
            case 3: chosen += 7;
            default: return chosen;
        }
    }

    static String sparse(String chosen) {
        switch (chosen) {
            case "one": return chosen + 1;
            case "a thousand": return new String(chosen);
            default: return String.valueOf(chosen.length());
        }
    }

    Object loops(long many, double share) {
        List<Object> kept = new ArrayList<Object>();
        outer:
        for (long at = 0; at < many; at++) {
            for (int inner = 0; inner < 5; inner++) {
                if (at * share > inner) continue outer;
                kept.add(new Object[] {at, share, inner});
            }
        }
        while (kept.size() > 3) kept.remove(0);
        return kept.toArray();
    }

    static Object copies(int[] numbers, Object[] objects) throws CloneNotSupportedException {
        return numbers == null ? objects.clone() : numbers.clone();
    }

    synchronized int throwing(int depth) {
        try {
            if (depth > 3) throw new IOException("deep");
            synchronized (made) {
                return throwing(depth + 1);
            }
        } catch (IOException e) {
            return e.getMessage().length();
        } catch (RuntimeException e) {
            throw new IllegalStateException(e);
        } finally {
            table = new int[depth][];
        }
    }

    Runnable inner() {
        return new Runnable() {
            @Override
            public void run() {
                throwing(dense(table.length));
            }
        };
    }

    boolean isShut(Object request, Object response) {
        return request == response && made.equals(request);
    }

    static void endless(boolean on) {
        do {
            new Object();
        } while (on);
    }
}
