package victim.invariants;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Map;
import java.util.concurrent.Callable;
import victim.tenant.Keeper;
import victim.tenant.Task;

/** Code that runs once something else has ended: an object's life, or a block of code. */
final class Cleanup {
    /** The error that the program's own code throws: made beforehand, so that throwing it allocates nothing. */
    private static final IllegalStateException OWN = new IllegalStateException("the program's own");

    private Cleanup() {}

    static void addTo(Map<String, Callable<Row>> rows) {
        Cleaner cleaner = Cleaner.create();
        rows.put("cleaner", () -> new Dying(task -> cleaner.register(new Object(), task)));
        rows.put("finalizer", () -> new Dying(Finalized::new));
        rows.put("finally", () -> new Masking(Keeper::tryFinally));
        rows.put("close", () -> new Masking(Keeper::tryWithResource));
    }

    /** Makes an object that nobody refers to and at whose death the task runs. */
    private interface Mortal {
        void make(Task task);
    }

    private static final class Finalized {
        private final Task task;

        Finalized(Task task) {
            this.task = task;
        }

        @Override
        @SuppressWarnings({"deprecation", "removal"})
        protected void finalize() {
            task.run();
        }
    }

    private static final class Dying implements Row {
        private final Mortal mortal;
        private Task[] tasks;

        Dying(Mortal mortal) {
            this.mortal = mortal;
        }

        @Override
        public void prepare(int trials) {
            tasks = new Task[trials];
            for (int trial = 0; trial < trials; trial++) {
                tasks[trial] = new Task();
            }
        }

        @Override
        public void during(int trial) throws Exception {
            mortal.make(tasks[trial]);
            System.gc();
            Rows.until(() -> tasks[trial].begun() > 0);
        }

        @Override
        public String after(int trial) throws Exception {
            // It has begun; whether it was refused shows within moments.
            Rows.until(() -> tasks[trial].done() > 0 || isLater(trial));
            return tasks[trial].done() == 1 ? null : "what was to be cleaned up is left";
        }

        /** Tasks of one thread run in order, so that one done later shows that this one never is. */
        private boolean isLater(int trial) throws Exception {
            Task probe = new Task();
            mortal.make(probe);
            System.gc();
            Rows.until(() -> probe.done() > 0);
            return probe.done() > 0;
        }
    }

    /** The program's own error must arrive, whatever the handlers on its way allocate. */
    private static final class Masking implements Row {
        private final Way way;
        private final Keeper keeper = new Keeper();
        private Throwable[] arrived;

        private interface Way {
            void go(Keeper keeper, RuntimeException own);
        }

        Masking(Way way) {
            this.way = way;
        }

        @Override
        public void prepare(int trials) {
            arrived = new Throwable[trials];
        }

        @Override
        public void during(int trial) {
            try {
                way.go(keeper, OWN);
            } catch (IllegalStateException | OutOfMemoryError e) {
                arrived[trial] = e;
            }
        }

        @Override
        public String after(int trial) {
            return arrived[trial] == OWN ? null : "masked by " + arrived[trial];
        }
    }
}
