package rows;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/** Work that is done by a thread each. */
public final class Crew {
    private Crew() {}

    /**
     * Does all tasks at the same time and returns their results in order.
     *
     * @throws ExecutionException when one of them failed; the others have ended by then
     */
    public static <T> List<T> run(String name, List<? extends Callable<T>> tasks)
            throws InterruptedException, ExecutionException {
        List<FutureTask<T>> results = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (Callable<T> task : tasks) {
            FutureTask<T> result = new FutureTask<>(task);
            Runnable counted =
                    () -> {
                        result.run();
                        Allocation.ends();
                    };
            results.add(result);
            threads.add(new Thread(counted, name + "-" + (threads.size() + 1)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        List<T> values = new ArrayList<>();
        for (FutureTask<T> result : results) {
            values.add(result.get());
        }
        return values;
    }
}
