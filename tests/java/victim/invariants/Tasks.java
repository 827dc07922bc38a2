package victim.invariants;

import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import victim.tenant.Alarm;
import victim.tenant.Handoff;
import victim.tenant.Task;

/** Timers, executors and futures. */
final class Tasks {
    /** The error that the program's own code throws: made beforehand, so that throwing it allocates nothing. */
    private static final IllegalStateException OWN = new IllegalStateException("the program's own");

    private Tasks() {}

    static void addTo(Map<String, Callable<Row>> rows) {
        rows.put("fixed-rate", FixedRate::new);
        rows.put("timer", Timers::new);
        rows.put("submit", Submit::new);
        rows.put("future-task", Delivery::new);
        rows.put("completable-future", Completion::new);
    }

    private static final class FixedRate implements Row {
        private ScheduledExecutorService pool;
        private Task[] tasks;
        private Future<?>[] futures;

        @Override
        public void prepare(int trials) {
            pool = Executors.newSingleThreadScheduledExecutor(Tasks::daemon);
            tasks = new Task[trials];
            futures = new Future<?>[trials];
            for (int trial = 0; trial < trials; trial++) {
                tasks[trial] = new Task();
            }
        }

        @Override
        public void during(int trial) throws Exception {
            Task task = tasks[trial];
            futures[trial] = pool.scheduleAtFixedRate(task, 0, 5, TimeUnit.MILLISECONDS);
            Rows.until(() -> task.begun() >= 3 || futures[trial].isDone());
        }

        @Override
        public String after(int trial) throws Exception {
            if (futures[trial].isDone()) {
                return "the task has stopped after " + tasks[trial].begun() + " runs";
            }
            int before = tasks[trial].done();
            Rows.until(() -> tasks[trial].done() > before);
            futures[trial].cancel(false);
            return tasks[trial].done() > before ? null : "the task does not run any more";
        }
    }

    private static final class Timers implements Row {
        private Timer[] timers;
        private Alarm[] alarms;

        @Override
        public void prepare(int trials) {
            timers = new Timer[trials];
            alarms = new Alarm[trials];
            for (int trial = 0; trial < trials; trial++) {
                timers[trial] = new Timer(true);
                alarms[trial] = new Alarm();
            }
        }

        @Override
        public void during(int trial) throws Exception {
            timers[trial].schedule(alarms[trial], 0);
            // A refused task counts as begun and never as done.
            Rows.until(() -> alarms[trial].task().begun() > 0);
            Rows.until(() -> alarms[trial].task().done() > 0 || isDead(timers[trial]));
        }

        @Override
        public String after(int trial) {
            boolean dead = isDead(timers[trial]);
            timers[trial].cancel();
            return dead ? "nothing can be scheduled any more" : null;
        }

        private static boolean isDead(Timer timer) {
            try {
                timer.schedule(
                        new TimerTask() {
                            @Override
                            public void run() {}
                        },
                        0);
                return false;
            } catch (IllegalStateException e) {
                return true;
            }
        }
    }

    /** A refused task is a failed task, and whoever asks its future learns that. */
    private static final class Submit implements Row {
        private final ExecutorService pool = Executors.newFixedThreadPool(2, Tasks::daemon);
        private Task[] tasks;

        @Override
        public void prepare(int trials) {
            tasks = new Task[trials];
            for (int trial = 0; trial < trials; trial++) {
                tasks[trial] = new Task();
            }
        }

        @Override
        public void during(int trial) throws Throwable {
            answer(trial);
        }

        @Override
        public String after(int trial) throws Exception {
            answer(trial);
            return null;
        }

        private void answer(int trial) throws Exception {
            Future<Integer> future = pool.submit((Callable<Integer>) tasks[trial]);
            try {
                if (future.get(60, TimeUnit.SECONDS) != 11) {
                    throw new AssertionError("a wrong answer");
                }
            } catch (ExecutionException e) {
                if (e.getCause() instanceof Error) {
                    throw (Error) e.getCause();
                }
                throw e;
            }
        }
    }

    /**
     * The tenant's executor runs somebody's task, which others await in a queue.
     *
     * <p>A {@link java.util.concurrent.FutureTask} itself allocates only while its calls are linked,
     * once a process; what puts it into the queue as it completes does so every time.
     */
    private static final class Delivery implements Row {
        private final Handoff handoff = new Handoff();
        private CompletionService<Integer>[] services;

        @SuppressWarnings({"unchecked", "rawtypes"})
        @Override
        public void prepare(int trials) throws Exception {
            services = new CompletionService[trials];
            for (int trial = 0; trial < trials; trial++) {
                services[trial] = new ExecutorCompletionService<>(handoff);
            }
            // While the JVM resolves a call it makes a string for the class loader, which is no
            // matter of completion.
            CompletionService<Integer> first = new ExecutorCompletionService<>(handoff);
            first.submit(Tasks::fail);
            first.take();
        }

        @Override
        public void during(int trial) {
            services[trial].submit(Tasks::fail);
        }

        @Override
        public String after(int trial) throws Exception {
            Future<Integer> future = services[trial].poll();
            return future == null ? "who awaits the task waits for ever" : outcome(future);
        }
    }

    /** The tenant's executor runs what completes somebody's future with the program's own error. */
    private static final class Completion implements Row {
        private final Handoff handoff = new Handoff();
        private Future<?>[] futures;

        @Override
        public void prepare(int trials) {
            futures = new Future<?>[trials];
        }

        @Override
        public void during(int trial) {
            CompletableFuture<Integer> future = new CompletableFuture<>();
            futures[trial] = future;
            future.completeAsync(Tasks::fail, handoff);
        }

        @Override
        public String after(int trial) throws Exception {
            return futures[trial].isDone() ? outcome(futures[trial]) : "the future never completes";
        }
    }

    /** Returns the fault of a future that is to have failed with the program's own error; null if none. */
    private static String outcome(Future<?> future) throws InterruptedException {
        try {
            return "the future has a value: " + future.get();
        } catch (ExecutionException e) {
            return e.getCause() == OWN ? null : "the future failed with " + e.getCause();
        }
    }

    private static Integer fail() {
        throw OWN;
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }
}
