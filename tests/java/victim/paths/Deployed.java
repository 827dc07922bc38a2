package victim.paths;

import java.util.ArrayList;
import java.util.List;

/** A program that {@link Storm} deploys in a class loader of its own: it fills a static list, and has a thread. */
public final class Deployed implements AutoCloseable {
    private static final List<byte[]> STATE = new ArrayList<>();

    private final Thread worker = new Thread(Deployed::works, "deployed");

    /** Starts it; the thread has the loader as its context. */
    public Deployed() {
        worker.setContextClassLoader(Deployed.class.getClassLoader());
        worker.setDaemon(true);
        worker.start();
    }

    private static void works() {
        while (!Thread.currentThread().isInterrupted()) {
            synchronized (STATE) {
                if (STATE.size() < 1000) {
                    STATE.add(new byte[200]);
                }
            }
            try {
                Thread.sleep(1);
            } catch (InterruptedException end) {
                return;
            }
        }
    }

    @Override
    public void close() {
        worker.interrupt();
        try {
            worker.join();
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }
}
