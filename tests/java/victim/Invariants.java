package victim;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import victim.tenant.Probe;
import victim.invariants.Row;
import victim.invariants.Rows;

/**
 * Tests the invariants that a refusal may break: one row of the table a process.
 *
 * <p>Code of {@code victim.tenant} is refused; code of {@code victim.invariants} observes what that
 * does to others, and has an account of its own that is never refused.
 *
 * <pre>
 * prepare ROW TRIALS   makes what the trials need, while nothing is refused yet
 * arm                  waits until an allocation by the tenant is refused
 * run                  every trial; answers {@code thrown N}: those that ended in a refusal
 * calm                 waits until the tenant is no longer refused
 * check                looks what the trials left; answers {@code broken N}, of all rows so far
 * </pre>
 *
 * <p>After {@code check} the row can be prepared anew.
 */
public final class Invariants {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final long PATIENCE_NS = 120_000_000_000L;
    private static Row row;
    private static int trials;
    private static final List<String> BROKEN = new ArrayList<>();

    private Invariants() {}

    public static void main(String[] args) throws Exception {
        // A thread that dies of a refusal is what some rows look for, not a complaint.
        Thread.setDefaultUncaughtExceptionHandler(Invariants::report);
        Protocol.serve(
                Map.of(
                        "prepare", words -> prepare(words[1], Integer.parseInt(words[2])),
                        "arm", words -> await(true),
                        "run", words -> run(),
                        "calm", words -> await(false),
                        "check", words -> check()));
    }

    private static void report(Thread thread, Throwable error) {
        System.err.println(thread.getName() + " ended by " + error);
    }

    private static void prepare(String name, int count) throws Exception {
        row = Rows.named(name);
        trials = count;
        row.prepare(count);
    }

    private static void await(boolean refused) throws InterruptedException {
        long end = System.nanoTime() + PATIENCE_NS;
        // Rows are not to depend on which allocation is the first after a change.
        for (int agreed = 0; agreed < 20; ) {
            agreed = isRefused() == refused ? agreed + 1 : 0;
            if (System.nanoTime() > end) {
                throw new AssertionError("the tenant is still " + (refused ? "not " : "") + "refused");
            }
            Thread.sleep(1);
        }
    }

    private static boolean isRefused() {
        try {
            Probe.allocate();
            return false;
        } catch (Throwable e) {
            if (!isRefusal(e)) {
                throw e;
            }
            return true;
        }
    }

    private static boolean isRefusal(Throwable e) {
        return e.getClass().getName().startsWith("dev.heapwarden.");
    }

    /** An allocation within 2 ms of its thread's time after a refusal is let through, for it may be the VM's. */
    private static void workOn() {
        long end = THREADS.getCurrentThreadCpuTime() + 5_000_000;
        while (THREADS.getCurrentThreadCpuTime() < end) {
            Thread.onSpinWait();
        }
    }

    private static void run() throws InterruptedException {
        int thrown = 0;
        for (int trial = 0; trial < trials; trial++) {
            workOn();
            try {
                row.during(trial);
            } catch (Throwable e) {
                if (isRefusal(e)) {
                    if (thrown++ == 0) {
                        e.printStackTrace();
                    }
                } else {
                    broken(trial, e);
                }
            }
            // Code that the agent met for the first time in this trial it knows in the next.
            Thread.sleep(20);
        }
        Protocol.say("thrown " + thrown);
    }

    private static void check() {
        for (int trial = 0; trial < trials; trial++) {
            try {
                String what = row.after(trial);
                if (what != null) {
                    BROKEN.add(trial + ": " + what);
                }
            } catch (Throwable e) {
                broken(trial, e);
            }
        }
        Protocol.say("broken " + BROKEN.size());
        BROKEN.stream().limit(3).forEach(what -> Protocol.say("what " + what));
    }

    private static void broken(int trial, Throwable e) {
        e.printStackTrace();
        BROKEN.add(trial + ": " + e);
    }
}
