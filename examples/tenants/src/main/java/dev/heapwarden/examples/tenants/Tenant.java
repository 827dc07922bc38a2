package dev.heapwarden.examples.tenants;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.Mask;
import dev.heapwarden.MemoryQuotaExceededError;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** A tenant: its scope's name, what it keeps, and the most that it wants to keep. */
final class Tenant {
    /** Pieces made by one task: 1 MiB. */
    private static final int PIECES_OF_A_TASK = 256;

    final String name;
    final Store store = new Store();
    private final int mostPieces;
    private final AtomicInteger shed = new AtomicInteger();
    private int done;
    private int refused;

    Tenant(String name, int mostMebibytes) {
        this.name = name;
        this.mostPieces = mostMebibytes * PIECES_OF_A_TASK;
    }

    /**
     * Hands a task to the host's executor in this tenant's scope. That allocates a little for the tenant on the host's
     * own thread, which must not be refused for it: the task will be.
     */
    Future<?> submit(ExecutorService executor) throws Exception {
        try (Mask mask = Heapwarden.mask()) {
            return Heapwarden.call(name, () -> executor.submit(this::work));
        }
    }

    /** A task's work. It knows nothing of scopes: the executor was wrapped. */
    private void work() {
        for (int i = 0; i < PIECES_OF_A_TASK; i++) {
            store.add();
            store.trim(mostPieces);
        }
    }

    /** Waits for a task's end and notes it. */
    void await(Future<?> task) throws InterruptedException {
        try {
            task.get();
            done++;
        } catch (ExecutionException thrown) {
            if (!(thrown.getCause() instanceof MemoryQuotaExceededError error)) {
                throw new IllegalStateException("a task failed otherwise", thrown);
            }
            if (refused++ == 0) {
                System.out.println(name + " is refused: " + error);
            }
        }
    }

    /** Lets go of the older half: there is pressure. */
    void shedHalf() {
        store.trim(store.count() / 2);
        shed.incrementAndGet();
    }

    /** How often {@link #shedHalf} was called. */
    int shed() {
        return shed.get();
    }

    /** Tasks that came to their end. */
    int done() {
        return done;
    }

    /** Tasks that were refused memory. */
    int refused() {
        return refused;
    }
}
