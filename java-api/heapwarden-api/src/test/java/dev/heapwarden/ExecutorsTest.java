package dev.heapwarden;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests the calls that wrapped executors hand on to those that they wrap. */
final class ExecutorsTest {
    private static final long BOUND_SECONDS = 60;

    private static <T> T result(Future<T> future) throws Exception {
        return future.get(BOUND_SECONDS, TimeUnit.SECONDS);
    }

    @Test
    void every_way_of_submitting_runs_the_task() throws Exception {
        ExecutorService executor = Heapwarden.wrap(Executors.newFixedThreadPool(2));
        CountDownLatch executed = new CountDownLatch(1);
        executor.execute(executed::countDown);
        assertTrue(executed.await(BOUND_SECONDS, TimeUnit.SECONDS));
        assertEquals("a", result(executor.submit(() -> "a")));
        assertEquals("b", result(executor.submit(() -> {}, "b")));
        result(executor.submit((Runnable) () -> {}));
        List<Callable<String>> tasks = List.of(() -> "x", () -> "y");
        assertEquals("x", result(executor.invokeAll(tasks).get(0)));
        assertEquals("y", result(executor.invokeAll(tasks, 1, TimeUnit.MINUTES).get(1)));
        assertTrue(List.of("x", "y").contains(executor.invokeAny(tasks)));
        assertTrue(List.of("x", "y").contains(executor.invokeAny(tasks, 1, TimeUnit.MINUTES)));
        executor.shutdown();
        assertTrue(executor.awaitTermination(BOUND_SECONDS, TimeUnit.SECONDS));
        assertTrue(executor.isShutdown() && executor.isTerminated());
        assertThrows(RejectedExecutionException.class, () -> executor.execute(() -> {}));
    }

    @Test
    void what_a_task_throws_is_in_the_future() {
        ExecutorService executor = Heapwarden.wrap(Executors.newSingleThreadExecutor());
        IllegalStateException thrown = new IllegalStateException();
        Future<?> future =
                executor.submit(
                        (Runnable)
                                () -> {
                                    throw thrown;
                                });
        assertEquals(
                thrown,
                assertThrows(ExecutionException.class, () -> result(future)).getCause());
        executor.shutdownNow();
    }

    @Test
    void scheduled_tasks_run_and_can_be_cancelled() throws Exception {
        ScheduledExecutorService executor =
                Heapwarden.wrap(Executors.newSingleThreadScheduledExecutor());
        assertEquals("a", result(executor.schedule(() -> "a", 1, TimeUnit.MILLISECONDS)));
        result(executor.schedule(() -> {}, 1, TimeUnit.MILLISECONDS));
        CountDownLatch rate = new CountDownLatch(3);
        Future<?> atRate =
                executor.scheduleAtFixedRate(rate::countDown, 0, 1, TimeUnit.MILLISECONDS);
        assertTrue(rate.await(BOUND_SECONDS, TimeUnit.SECONDS));
        assertTrue(atRate.cancel(false));
        CountDownLatch delay = new CountDownLatch(3);
        executor.scheduleWithFixedDelay(delay::countDown, 0, 1, TimeUnit.MILLISECONDS);
        assertTrue(delay.await(BOUND_SECONDS, TimeUnit.SECONDS));
        executor.shutdownNow();
        assertTrue(executor.awaitTermination(BOUND_SECONDS, TimeUnit.SECONDS));
    }

    @Test
    void stages_of_a_future_run_on_it() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        assertEquals(
                3,
                result(
                        CompletableFuture.supplyAsync(() -> 1, Heapwarden.wrap(pool))
                                .thenApplyAsync(one -> one + 1, Heapwarden.pin(pool))
                                .thenCombineAsync(
                                        CompletableFuture.completedFuture(1),
                                        Integer::sum,
                                        Heapwarden.wrap((java.util.concurrent.Executor) pool))));
        pool.shutdown();
    }

    /** The close that {@code ExecutorService} has as of Java 19 would wait for ever here. */
    @Test
    void closing_the_common_pool_does_nothing() {
        new ScopedExecutorService(ForkJoinPool.commonPool()).close();
        assertTrue(!ForkJoinPool.commonPool().isShutdown());
    }

    @Test
    void closing_shuts_down() {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        new ScopedExecutorService(pool).close();
        assertTrue(pool.isShutdown());
    }
}
