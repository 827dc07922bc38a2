package walks;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * A heap of small objects that stays as it is, and a thread that notices how long it was kept from running.
 *
 * <p>Says {@code ready} and waits for a line; then watches, says {@code watching}, waits for a line, says the
 * longest gap in nanoseconds, and is ready again.
 */
public final class Watched {
    /** Bytes of a {@link Node} with its payload: 24 and 56. */
    private static final int NODE_BYTES = 80;
    private static final int PAYLOAD = 40;
    private static final int NODES_OF_A_LIST = 1000;

    /** What is looked for: a few arrays, large enough that some are sampled. */
    private static final int MARKED = 40;
    private static final int MARKED_LENGTH = 100_000;

    private static Object[] held;
    private static Marked[][] marked;

    private Watched() {}

    private static final class Node {
        final Node next;
        final byte[] payload = new byte[PAYLOAD];

        Node(Node next) {
            this.next = next;
        }
    }

    private static final class Marked {}

    public static void main(String[] arguments) throws IOException {
        hold(Long.parseLong(arguments[0]));
        Watcher watcher = new Watcher();
        watcher.setDaemon(true);
        watcher.start();
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.gc();
        while (true) {
            System.out.println("ready");
            if (orders.readLine() == null) {
                return;
            }
            watcher.longestNanos = 0;
            System.out.println("watching");
            if (orders.readLine() == null) {
                return;
            }
            System.out.println(watcher.longestNanos);
        }
    }

    private static void hold(long megabytes) {
        long lists = (megabytes << 20) / NODE_BYTES / NODES_OF_A_LIST;
        held = new Object[Math.toIntExact(lists)];
        for (int list = 0; list < held.length; list++) {
            Node last = null;
            for (int node = 0; node < NODES_OF_A_LIST; node++) {
                last = new Node(last);
            }
            held[list] = last;
        }
        marked = new Marked[MARKED][MARKED_LENGTH];
    }

    private static final class Watcher extends Thread {
        volatile long longestNanos;

        @Override
        public void run() {
            long last = System.nanoTime();
            while (true) {
                try {
                    Thread.sleep(1);
                } catch (InterruptedException end) {
                    return;
                }
                long now = System.nanoTime();
                longestNanos = Math.max(longestNanos, now - last);
                last = now;
            }
        }
    }
}
