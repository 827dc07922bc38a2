package victim;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.IntSupplier;

/**
 * A way to allocate one item that stays reachable from one reference, and the exact sizes of the
 * objects it consists of. Written {@code name} or {@code name:length}, for example {@code bytes:40}.
 */
final class Kind {
    private static final int WARM_UP = 3_000;
    private static final long WARM_UP_BYTES = 64L << 20;
    private static final Map<String, Kind> KNOWN = new HashMap<>();

    private final IntFunction<Object> maker;
    private final long[] sizes;

    private Kind(IntFunction<Object> maker, long... sizes) {
        this.maker = maker;
        this.sizes = sizes;
    }

    /** Allocates item {@code i}. Garbage beside the item is allowed and is never part of the sizes. */
    Object make(int i) {
        return maker.apply(i);
    }

    /** Bytes of each object that an item holds. */
    long[] sizes() {
        return sizes;
    }

    static final class Node implements Cloneable, Serializable {
        private static final long serialVersionUID = 1;
        long id;
        int[] cells;

        Node() {}

        Node copy() {
            try {
                return (Node) clone();
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    /**
     * The kind, made and run once a process: often enough that classes are loaded, call sites linked
     * and reflection inflated before any account's frame is on the stack. What the JVM keeps for
     * itself the first time is nobody's holding.
     */
    static Kind parse(String text) {
        Kind kind =
                KNOWN.computeIfAbsent(
                        text,
                        absent -> {
                            Kind made = create(text);
                            made.warmUp();
                            return made;
                        });
        // A collection may have cleared the JDK's soft caches (Shenandoah does at System.gc);
        // refilled now, they are not refilled, and charged, while the batch is made.
        for (int i = 0; i < 3; i++) {
            kind.make(i);
        }
        return kind;
    }

    private void warmUp() {
        Object[] slot = new Object[1];
        long bytes = 0;
        for (int i = 0; i < WARM_UP && bytes < WARM_UP_BYTES; i++) {
            slot[0] = make(i);
            for (long size : sizes) {
                bytes += size;
            }
        }
    }

    private static Kind create(String text) {
        int colon = text.indexOf(':');
        String name = colon < 0 ? text : text.substring(0, colon);
        int n = colon < 0 ? 0 : Integer.parseInt(text.substring(colon + 1));
        switch (name) {
            case "object":
                return new Kind(i -> new Object(), Layout.measured(i -> new Object()));
            case "node":
                return new Kind(i -> new Node(), nodeBytes());
            case "booleans":
                return new Kind(i -> new boolean[n], Layout.array(1, n));
            case "bytes":
                return new Kind(i -> new byte[n], Layout.array(1, n));
            case "chars":
                return new Kind(i -> new char[n], Layout.array(2, n));
            case "shorts":
                return new Kind(i -> new short[n], Layout.array(2, n));
            case "ints":
                return new Kind(i -> new int[n], Layout.array(4, n));
            case "longs":
                return new Kind(i -> new long[n], Layout.array(8, n));
            case "floats":
                return new Kind(i -> new float[n], Layout.array(4, n));
            case "doubles":
                return new Kind(i -> new double[n], Layout.array(8, n));
            case "references":
                return new Kind(i -> new Object[n], Layout.array(0, n));
            case "grid":
                return new Kind(
                        i -> new int[3][n],
                        Layout.array(0, 3), Layout.array(4, n), Layout.array(4, n),
                        Layout.array(4, n));
            case "cloned-array":
                byte[] original = new byte[n];
                return new Kind(i -> original.clone(), Layout.array(1, n));
            case "cloned-object":
                Node node = new Node();
                return new Kind(i -> node.copy(), nodeBytes());
            case "boxed":
                return new Kind(
                        i -> Integer.valueOf(i + 1_000),
                        Layout.measured(i -> Integer.valueOf(i + 1_000)));
            case "lambda":
                return new Kind(Kind::lambda, Layout.measured(Kind::lambda));
            case "reflected-object":
                Constructor<Node> constructor = nodeConstructor();
                return new Kind(i -> newInstance(constructor), nodeBytes());
            case "reflected-array":
                return new Kind(i -> Array.newInstance(int.class, n), Layout.array(4, n));
            case "deserialized":
                byte[] stream = serializedNode(n);
                return new Kind(i -> deserialize(stream), nodeBytes(), Layout.array(4, n));
            case "concatenated":
                // Ten Latin-1 characters: a prefix and nine digits.
                return new Kind(
                        i -> "#" + (100_000_000 + i), stringBytes(), Layout.array(1, 10));
            default:
                throw new IllegalArgumentException("no such kind: " + text);
        }
    }

    private static Object lambda(int i) {
        IntSupplier supplier = () -> i;
        return supplier;
    }

    private static long nodeBytes() {
        return Layout.measured(i -> new Node());
    }

    /** A string that shares its characters with another is one object. */
    private static long stringBytes() {
        String shared = new String(new char[] {'x', 'y'});
        return Layout.measured(i -> new String(shared));
    }

    private static Constructor<Node> nodeConstructor() {
        try {
            return Node.class.getDeclaredConstructor();
        } catch (NoSuchMethodException e) {
            throw new AssertionError(e);
        }
    }

    private static Object newInstance(Constructor<Node> constructor) {
        try {
            return constructor.newInstance();
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static byte[] serializedNode(int cells) {
        Node node = new Node();
        node.cells = new int[cells];
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(node);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    private static Object deserialize(byte[] stream) {
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(stream))) {
            return in.readObject();
        } catch (IOException | ClassNotFoundException e) {
            throw new AssertionError(e);
        }
    }
}
