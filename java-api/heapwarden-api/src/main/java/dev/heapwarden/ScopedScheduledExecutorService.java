package dev.heapwarden;

import java.util.concurrent.Callable;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Runs each task, every time, in the scope in which it was scheduled. */
final class ScopedScheduledExecutorService extends ScopedExecutorService
        implements ScheduledExecutorService {
    private final ScheduledExecutorService delegate;

    ScopedScheduledExecutorService(ScheduledExecutorService delegate) {
        super(delegate);
        this.delegate = delegate;
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable task, long delay, TimeUnit unit) {
        return delegate.schedule(scoped(task), delay, unit);
    }

    @Override
    public <T extends @Nullable Object> ScheduledFuture<T> schedule(
            Callable<T> task, long delay, TimeUnit unit) {
        return delegate.schedule(scoped(task), delay, unit);
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(
            Runnable task, long initialDelay, long period, TimeUnit unit) {
        return delegate.scheduleAtFixedRate(scoped(task), initialDelay, period, unit);
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(
            Runnable task, long initialDelay, long delay, TimeUnit unit) {
        return delegate.scheduleWithFixedDelay(scoped(task), initialDelay, delay, unit);
    }
}
