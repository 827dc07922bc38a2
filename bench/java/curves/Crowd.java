package curves;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** The work of {@link Churn}, shared by threads. */
final class Crowd implements Work {
    private final int threads;
    private final Churn churn;

    Crowd(int threads, int length, int steps) {
        this.threads = threads;
        this.churn = new Churn(length, steps);
    }

    @Override
    public long run(long operations) throws InterruptedException {
        AtomicLong sum = new AtomicLong();
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> sum.addAndGet(churn.run(operations / threads)));
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            thread.join();
        }
        return sum.get();
    }

    @Override
    public int arrayLength() {
        return churn.arrayLength();
    }
}
