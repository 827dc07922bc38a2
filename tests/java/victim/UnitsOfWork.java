package victim;

import com.acme.tenant.Cleaner;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * The same code on threads of many kinds. It holds MOST bytes more and expects no error. Each command
 * says "went on", "ended CLASS" if the error ended the thread, or "refused CLASS" if the unit of work
 * failed with it and the thread went on.
 *
 * <pre>
 * thread MOST     a thread of its own
 * worker MOST     a bare worker of a pool
 * future MOST     a task submitted to a pool
 * stage MOST      an asynchronous stage
 * virtual MOST    a virtual thread; says "none" before JDK 21
 * </pre>
 */
public final class UnitsOfWork {
    private static volatile String last;

    private UnitsOfWork() {}

    public static void main(String[] args) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler(
                (thread, error) -> last = "ended " + error.getClass().getName());
        Protocol.serve(
                Map.of(
                        "thread", words -> thread(cleaner(words[1])),
                        "worker", words -> worker(cleaner(words[1])),
                        "future", words -> future(cleaner(words[1])),
                        "stage",
                        words ->
                                say(CompletableFuture.runAsync(cleaner(words[1]), ForkJoinPool.commonPool())),
                        "virtual", words -> virtual(cleaner(words[1]))));
    }

    private static Cleaner cleaner(String most) {
        return new Cleaner(Long.parseLong(most));
    }

    private static void thread(Cleaner cleaner) throws InterruptedException {
        last = "went on";
        Thread thread = new Thread(cleaner, "own-loop");
        thread.start();
        thread.join();
        Protocol.say(last);
    }

    private static void worker(Cleaner cleaner) throws InterruptedException {
        last = "went on";
        Queue<Thread> workers = new ConcurrentLinkedQueue<>();
        ExecutorService pool =
                Executors.newFixedThreadPool(
                        1,
                        task -> {
                            Thread worker = new Thread(task, "worker");
                            workers.add(worker);
                            return worker;
                        });
        pool.execute(cleaner);
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS);
        // A pool is terminated before the error of its last worker reaches the handler.
        for (Thread worker : workers) {
            worker.join();
        }
        Protocol.say(last);
    }

    private static void future(Cleaner cleaner) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        Future<?> future = pool.submit(cleaner);
        pool.shutdown();
        say(future);
    }

    private static void say(Future<?> future) throws InterruptedException {
        try {
            future.get();
            Protocol.say("went on");
        } catch (ExecutionException e) {
            Protocol.say("refused " + e.getCause().getClass().getName());
        }
    }

    private static void virtual(Cleaner cleaner) throws Exception {
        last = "went on";
        try {
            Object thread =
                    Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, cleaner);
            ((Thread) thread).join();
            Protocol.say(last);
        } catch (NoSuchMethodException | InvocationTargetException none) {
            // A method of a preview throws.
            Protocol.say("none");
        }
    }
}
