package tenant;

import java.util.concurrent.CountDownLatch;

/** Waits for a latch: as the task of a thread, or as a thread of its own class. */
public final class Waiting implements Runnable {
    private final CountDownLatch latch;

    public Waiting(CountDownLatch latch) {
        this.latch = latch;
    }

    @Override
    public void run() {
        await(latch);
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    /** A thread that is its own task. */
    public static final class Own extends Thread {
        private final CountDownLatch latch;

        public Own(CountDownLatch latch) {
            super("own");
            this.latch = latch;
        }

        @Override
        public void run() {
            await(latch);
        }
    }
}
