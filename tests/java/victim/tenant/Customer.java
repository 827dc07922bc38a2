package victim.tenant;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;

/** Uses the locks of others as the book says. */
public final class Customer {
    private volatile int served;
    private volatile Object kept;

    /** Allocates nothing itself. */
    public void within(Lock lock) {
        lock.lock();
        try {
            served = served + 1;
        } finally {
            lock.unlock();
        }
    }

    /** Allocates nothing itself. */
    public void await(Lock lock, Condition condition, BooleanSupplier holds)
            throws InterruptedException {
        lock.lock();
        try {
            while (!holds.getAsBoolean()) {
                condition.await();
            }
            served = served + 1;
        } finally {
            lock.unlock();
        }
    }

    public void owning(Object monitor) {
        synchronized (monitor) {
            kept = new byte[100];
            served = served + 1;
        }
    }

    public int served() {
        return served;
    }
}
