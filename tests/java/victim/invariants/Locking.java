package victim.invariants;

import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import victim.tenant.Customer;

/**
 * Locks that the tenant shares with others.
 *
 * <p>Each is used once beforehand: while the JVM resolves a call it makes a string for the class
 * loader, which is no matter of locks.
 */
final class Locking {
    private Locking() {}

    static void addTo(Map<String, Callable<Row>> rows) {
        rows.put("read-lock", ReadLock::new);
        rows.put("lock", Contended::new);
        rows.put("condition", Waiting::new);
        rows.put("monitor", Monitor::new);
    }

    /** The lock counts a reader before it allocates what it notes of that reader. */
    private static final class ReadLock implements Row {
        private final Customer customer = new Customer();
        private ReentrantReadWriteLock[] locks;

        @Override
        public void prepare(int trials) {
            locks = new ReentrantReadWriteLock[trials];
            for (int trial = 0; trial < trials; trial++) {
                locks[trial] = new ReentrantReadWriteLock();
            }
            customer.within(locks[0].readLock());
        }

        @Override
        public void during(int trial) throws Exception {
            Lock lock = locks[trial].readLock();
            // The first reader is noted in a field.
            lock.lock();
            try {
                new Tenancy(() -> customer.within(lock)).whole();
            } finally {
                lock.unlock();
            }
        }

        @Override
        public String after(int trial) {
            int readers = locks[trial].getReadLockCount();
            return readers == 0 ? null : "left locked by " + readers + " readers that are gone";
        }
    }

    private static final class Contended implements Row {
        private final Customer customer = new Customer();
        private final ReentrantLock lock = new ReentrantLock();

        @Override
        public void prepare(int trials) {
            customer.within(lock);
        }

        @Override
        public void during(int trial) throws Exception {
            Tenancy tenancy = new Tenancy(() -> customer.within(lock));
            lock.lock();
            try {
                tenancy.start();
                // JDK 21 and later go on without a place in the queue for which they find no memory.
                Rows.until(() -> tenancy.isParked() || !tenancy.isAlive());
            } finally {
                lock.unlock();
            }
            tenancy.finish();
        }

        @Override
        public String after(int trial) {
            return lock.isLocked() || lock.hasQueuedThreads() ? "left locked" : null;
        }
    }

    private static final class Waiting implements Row {
        private final Customer customer = new Customer();
        private final ReentrantLock lock = new ReentrantLock();
        private final Condition condition = lock.newCondition();
        private final AtomicInteger asked = new AtomicInteger();
        private volatile boolean holds;

        @Override
        public void prepare(int trials) throws Exception {
            during(0);
        }

        @Override
        public void during(int trial) throws Exception {
            holds = false;
            asked.set(0);
            Tenancy tenancy = new Tenancy(() -> customer.await(lock, condition, this::ask));
            tenancy.start();
            // JDK 21 and later return from a wait for which they find no memory.
            Rows.until(() -> isAwaited() || asked.get() > 3 || !tenancy.isAlive());
            holds = true;
            signal();
            tenancy.finish();
        }

        private boolean ask() {
            asked.incrementAndGet();
            return holds;
        }

        private boolean isAwaited() {
            lock.lock();
            try {
                return lock.hasWaiters(condition);
            } finally {
                lock.unlock();
            }
        }

        private void signal() {
            lock.lock();
            try {
                condition.signalAll();
            } finally {
                lock.unlock();
            }
        }

        @Override
        public String after(int trial) {
            return lock.isLocked() || isAwaited() ? "left locked or awaited" : null;
        }
    }

    private static final class Monitor implements Row {
        private final Customer customer = new Customer();
        private final Object monitor = new Object();

        @Override
        public void during(int trial) throws Exception {
            new Tenancy(() -> customer.owning(monitor)).whole();
        }

        @Override
        public String after(int trial) throws Exception {
            new Tenancy(() -> customer.owning(monitor)).whole();
            return null;
        }
    }

    /** The tenant's part of a trial. */
    private interface Body {
        void run() throws Exception;
    }

    private static final class Tenancy extends Thread {
        private final Body body;
        private final AtomicReference<Throwable> thrown = new AtomicReference<>();

        Tenancy(Body body) {
            this.body = body;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                body.run();
            } catch (Throwable e) {
                thrown.set(e);
            }
        }

        boolean isParked() {
            return getState() == State.WAITING || getState() == State.TIMED_WAITING;
        }

        void whole() throws Exception {
            start();
            finish();
        }

        /** Waits for its end, and throws what it threw. */
        void finish() throws Exception {
            join(60_000);
            if (isAlive()) {
                throw new AssertionError("the tenant's thread hangs");
            }
            if (thrown.get() instanceof Error) {
                throw (Error) thrown.get();
            }
            if (thrown.get() != null) {
                throw (Exception) thrown.get();
            }
        }
    }
}
