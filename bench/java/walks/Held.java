package walks;

import java.util.function.LongFunction;

/** A heap of small objects, and what is looked for in it. A service of its own where a loader has its own copy. */
public final class Held implements LongFunction<Object> {
    /** Bytes of a {@link Node} with its payload: 24 and 56. */
    private static final int NODE_BYTES = 80;
    private static final int PAYLOAD = 40;
    private static final int NODES_OF_A_LIST = 1000;

    /** The number of objects that are looked for: a few arrays, large enough that some are sampled. */
    private static final int MARKED = 40;
    private static final int MAX_MARKED_LENGTH = 100_000;

    /** They are a sixteenth of the bytes at the most. */
    private static final int REFERENCE_BYTES = 4;

    private static Object[] held;
    private static Marked[][] marked;

    /** Made by whoever wants it to hold something. */
    public Held() {}

    private static final class Node {
        final Node next;
        final byte[] payload = new byte[PAYLOAD];

        Node(Node next) {
            this.next = next;
        }
    }

    private static final class Marked {}

    private static final class Given {}

    /** Holds so many bytes, and makes arrays for the caller to hold. */
    @Override
    public Object apply(long bytes) {
        long lists = bytes / NODE_BYTES / NODES_OF_A_LIST;
        held = new Object[Math.toIntExact(lists)];
        for (int list = 0; list < held.length; list++) {
            Node last = null;
            for (int node = 0; node < NODES_OF_A_LIST; node++) {
                last = new Node(last);
            }
            held[list] = last;
        }
        long length = bytes / 16 / MARKED / REFERENCE_BYTES;
        int markedLength = (int) Math.min(MAX_MARKED_LENGTH, length);
        marked = new Marked[MARKED][markedLength];
        return new Given[MARKED / 4][markedLength];
    }
}
