package dev.heapwarden;

import dev.heapwarden.internal.Link;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/** A task that runs in the scope in which it was wrapped. */
final class ScopedCallable<T extends @Nullable Object> implements Callable<T> {
    private final @Nullable Object scope;
    private final Callable<T> task;

    ScopedCallable(@Nullable Object scope, Callable<T> task) {
        this.scope = scope;
        this.task = task;
    }

    @Override
    public T call() throws Exception {
        long token = Link.resume(scope);
        try {
            return task.call();
        } finally {
            Link.close(token);
        }
    }

    @Override
    public String toString() {
        return "scoped " + task;
    }
}
