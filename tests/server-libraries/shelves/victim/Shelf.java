package victim;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A program that serves requests with a library: it holds what it is sent to hold. {@code port} tells where it
 * listens, {@code calls} how many requests its code has seen.
 */
abstract class Shelf {
    private static final int SLOTS = 500;
    private static final int SLOT_BYTES = 1_000;

    private final List<byte[][]> held = new ArrayList<>();
    private final AtomicInteger calls = new AtomicInteger();

    /** Starts the server on a free port of the loopback device; returns the port. */
    abstract int start() throws Exception;

    /** More orders than every shelf has. */
    Map<String, Protocol.Command> orders() {
        return Map.of();
    }

    final void serve() throws Exception {
        int port = start();
        Map<String, Protocol.Command> orders = new java.util.HashMap<>(orders());
        orders.put("port", words -> Protocol.say("port " + port));
        orders.put("calls", words -> Protocol.say("calls " + calls.get()));
        orders.put("drop", words -> drop());
        Protocol.serve(orders);
        // Some servers have threads that are no daemons.
        System.exit(0);
    }

    /** Serves a request for this path: {@code /hold}, {@code /drop}, and any other nothing. */
    final String answer(String path) {
        calls.incrementAndGet();
        switch (path) {
            case "/hold":
                hold();
                break;
            case "/drop":
                drop();
                break;
            default:
                break;
        }
        return "done";
    }

    private void hold() {
        byte[][] slots = new byte[SLOTS][];
        for (int at = 0; at < SLOTS; at++) {
            slots[at] = new byte[SLOT_BYTES];
        }
        synchronized (held) {
            held.add(slots);
        }
    }

    private void drop() {
        synchronized (held) {
            held.clear();
        }
    }
}
