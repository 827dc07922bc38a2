package victim;

import com.acme.place.jobs.Evictor;
import com.acme.place.store.Entries;
import com.acme.place.web.CartServlet;
import java.util.Map;
import java.util.concurrent.FutureTask;

/**
 * Requests and background work that each allocate one object of the account, on a thread of their own: so no
 * thread has a grace from the one before.
 *
 * <pre>
 * hold BYTES     holds so many bytes, for good
 * request TIMES  requests, as a servlet container runs them
 * pooled TIMES   requests that are tasks of a pool
 * job TIMES      background work that was submitted as a task
 * loop TIMES     the same work on a thread that is its own loop
 * </pre>
 */
public final class RefusedPlaces {
    private RefusedPlaces() {}

    public static void main(String[] args) throws Exception {
        CartServlet servlet = new CartServlet();
        Evictor evictor = new Evictor();
        // An error ends its thread. The test counts.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {});
        Protocol.serve(
                Map.of(
                        "hold", words -> Entries.hold(Integer.parseInt(words[1])),
                        "request", words -> times(words[1], () -> servlet::service),
                        "pooled", words -> times(words[1], () -> new FutureTask<>(servlet::service, null)),
                        "job", words -> times(words[1], () -> new FutureTask<>(evictor, null)),
                        "loop", words -> times(words[1], () -> evictor)));
    }

    private static void times(String times, java.util.function.Supplier<Runnable> work)
            throws InterruptedException {
        for (int left = Integer.parseInt(times); left > 0; left--) {
            Thread thread = new Thread(work.get());
            thread.start();
            thread.join();
        }
    }
}
