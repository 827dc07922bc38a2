package dev.heapwarden;

import dev.heapwarden.internal.Link;
import org.jspecify.annotations.Nullable;

/** A task that runs in the scope in which it was wrapped. */
final class ScopedRunnable implements Runnable {
    private final @Nullable Object scope;
    private final Runnable task;

    ScopedRunnable(@Nullable Object scope, Runnable task) {
        this.scope = scope;
        this.task = task;
    }

    @Override
    public void run() {
        long token = Link.resume(scope);
        try {
            task.run();
        } finally {
            Link.close(token);
        }
    }

    @Override
    public String toString() {
        return "scoped " + task;
    }
}
