package dev.heapwarden.examples.boot;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.scheduling.annotation.Async;
import org.springframework.stereotype.Service;

/** The basket of each tenant, its size known to the byte. Knows nothing of Heapwarden. */
@Service
public class Baskets {
    private static final int PIECE_LENGTH = 4 * 1024;

    /** Bytes that a piece takes in the heap: an array's header and its contents. */
    private static final long PIECE_BYTES = 16 + PIECE_LENGTH;

    private static final int KIBIBYTE = 1024;

    private final ConcurrentHashMap<String, List<byte[]>> baskets = new ConcurrentHashMap<>();

    /** For Spring. */
    public Baskets() {}

    /** Makes pieces and keeps them: 4 KiB each, the last one whole. */
    public void add(String tenant, int kibibytes) {
        List<byte[]> basket = baskets.computeIfAbsent(tenant, name -> new ArrayList<>());
        for (long made = 0; made < (long) kibibytes * KIBIBYTE; made += PIECE_LENGTH) {
            byte[] piece = new byte[PIECE_LENGTH];
            synchronized (basket) {
                basket.add(piece);
            }
        }
    }

    /** As {@link #add}, on a thread of Spring's executor. */
    @Async
    public CompletableFuture<String> addElsewhere(String tenant, int kibibytes) {
        add(tenant, kibibytes);
        return CompletableFuture.completedFuture(Thread.currentThread().getName() + "\n");
    }

    /** Lets go of everything. */
    public void drop(String tenant) {
        baskets.remove(tenant);
    }

    /** Bytes of the pieces that are kept. */
    public long bytes(String tenant) {
        List<byte[]> basket = baskets.get(tenant);
        if (basket == null) {
            return 0;
        }
        synchronized (basket) {
            return basket.size() * PIECE_BYTES;
        }
    }
}
