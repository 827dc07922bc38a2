package dev.heapwarden;

import dev.heapwarden.internal.Link;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Runs each task in the scope in which it was submitted; everything else is the delegate's. */
class ScopedExecutorService implements ExecutorService {
    private final ExecutorService delegate;

    ScopedExecutorService(ExecutorService delegate) {
        this.delegate = delegate;
    }

    /** The task in the calling thread's scope. */
    static Runnable scoped(Runnable task) {
        Objects.requireNonNull(task, "task");
        return Link.present() ? new ScopedRunnable(Link.capture(), task) : task;
    }

    /** The task in the calling thread's scope. */
    static <T extends @Nullable Object> Callable<T> scoped(Callable<T> task) {
        Objects.requireNonNull(task, "task");
        return Link.present() ? new ScopedCallable<>(Link.capture(), task) : task;
    }

    @Override
    public void execute(Runnable task) {
        delegate.execute(scoped(task));
    }

    @Override
    public <T extends @Nullable Object> Future<T> submit(Callable<T> task) {
        return delegate.submit(scoped(task));
    }

    @Override
    public <T extends @Nullable Object> Future<T> submit(Runnable task, T result) {
        return delegate.submit(scoped(task), result);
    }

    @Override
    public Future<?> submit(Runnable task) {
        return delegate.submit(scoped(task));
    }

    @Override
    public <T extends @Nullable Object> List<Future<T>> invokeAll(
            Collection<? extends Callable<T>> tasks) throws InterruptedException {
        return delegate.invokeAll(all(tasks));
    }

    @Override
    public <T extends @Nullable Object> List<Future<T>> invokeAll(
            Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException {
        return delegate.invokeAll(all(tasks), timeout, unit);
    }

    @Override
    public <T extends @Nullable Object> T invokeAny(Collection<? extends Callable<T>> tasks)
            throws InterruptedException, ExecutionException {
        return delegate.invokeAny(all(tasks));
    }

    @Override
    public <T extends @Nullable Object> T invokeAny(
            Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException, ExecutionException, TimeoutException {
        return delegate.invokeAny(all(tasks), timeout, unit);
    }

    @Override
    public void shutdown() {
        delegate.shutdown();
    }

    /** The tasks returned are still scoped: run elsewhere, they run in the scope they were given. */
    @Override
    public List<Runnable> shutdownNow() {
        return delegate.shutdownNow();
    }

    @Override
    public boolean isShutdown() {
        return delegate.isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return delegate.isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        return delegate.awaitTermination(timeout, unit);
    }

    /**
     * Closes it as {@code ExecutorService} does from Java 19 on. Calls the delegate's own method: the
     * common pool's does nothing, where the inherited one would wait for ever.
     */
    public void close() {
        if (delegate instanceof AutoCloseable) {
            try {
                ((AutoCloseable) delegate).close();
            } catch (RuntimeException thrown) {
                throw thrown;
            } catch (Exception thrown) {
                throw new IllegalStateException("the executor cannot be closed", thrown);
            }
        } else {
            delegate.shutdown();
        }
    }

    @Override
    public String toString() {
        return "scoped " + delegate;
    }

    private static <T extends @Nullable Object> List<Callable<T>> all(
            Collection<? extends Callable<T>> tasks) {
        List<Callable<T>> scoped = new ArrayList<>(tasks.size());
        for (Callable<T> task : tasks) {
            scoped.add(scoped(task));
        }
        return scoped;
    }
}
