package victim.stress;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongFunction;

/** A program that runs in a loop, and what became of its runs. Its answers depend on the seed alone. */
public final class Program implements Runnable {
    static final int SEEDS = 6;
    private static final long LONGEST_RUN_NS = 480_000_000_000L;
    private static final int MAX_TOLD = 4;

    final String name;
    /** Nothing may ever go wrong with it. */
    final boolean neighbour;

    private final LongFunction<String> code;
    private final ClassLoader context;
    private final String[] expected = new String[SEEDS];
    private final Map<String, Integer> failures = new TreeMap<>();
    private final List<String> wrong = new ArrayList<>();
    private int right;
    private int refused;
    private volatile boolean stopped;
    private volatile long runningSince;
    private Thread thread;

    public Program(
            String name, boolean neighbour, ClassLoader context, LongFunction<String> code) {
        this.name = name;
        this.neighbour = neighbour;
        this.context = context;
        this.code = code;
    }

    public boolean isNamed(String wanted) {
        return name.equals(wanted);
    }

    /** Takes the answers of a time without refusals for the truth, each twice. */
    public void learn() {
        for (int seed = 0; seed < SEEDS; seed++) {
            expected[seed] = ask(seed);
            String again = ask(seed);
            if (!again.equals(expected[seed])) {
                throw new AssertionError(name + " contradicts itself: " + again);
            }
        }
        if (Arrays.stream(expected).distinct().count() < 2) {
            throw new AssertionError(name + " always answers " + expected[0]);
        }
    }

    /** Every answer again; throws at the first that is wrong. */
    public void verify() {
        for (int seed = 0; seed < SEEDS; seed++) {
            String answer = ask(seed);
            if (!answer.equals(expected[seed])) {
                throw new AssertionError(name + " for " + seed + ": " + answer);
            }
        }
    }

    public void start() {
        thread = new Thread(this, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** After the run under way. */
    public void stop() {
        stopped = true;
    }

    /** Waits for its end, at most until then; false if it does not come. */
    public boolean awaitEnd(long deadlineNs) throws InterruptedException {
        thread.join(Math.max(1, (deadlineNs - System.nanoTime()) / 1_000_000));
        return !thread.isAlive();
    }

    /** Whether the run under way takes longer than any may. */
    public boolean isHung() {
        long since = runningSince;
        return since != 0 && System.nanoTime() - since > LONGEST_RUN_NS;
    }

    @Override
    public void run() {
        for (int run = 0; !stopped; run++) {
            int seed = run % SEEDS;
            runningSince = System.nanoTime();
            try {
                String answer = ask(seed);
                note(answer.equals(expected[seed]) ? null : seed + " is " + answer);
            } catch (Throwable e) {
                note(e);
            }
            runningSince = 0;
        }
    }

    private String ask(long seed) {
        Thread current = Thread.currentThread();
        ClassLoader before = current.getContextClassLoader();
        current.setContextClassLoader(context);
        try {
            return code.apply(seed);
        } finally {
            current.setContextClassLoader(before);
        }
    }

    private synchronized void note(String wrongAnswer) {
        if (wrongAnswer == null) {
            right++;
        } else if (wrong.size() < MAX_TOLD) {
            wrong.add(wrongAnswer);
        }
    }

    private synchronized void note(Throwable e) {
        String damage = Failure.damage(e);
        if (damage != null || neighbour) {
            if (wrong.size() < MAX_TOLD) {
                e.printStackTrace();
                wrong.add(damage == null ? e.toString() : damage);
            }
        } else if (Failure.isRefusal(e)) {
            refused++;
        } else {
            String kind = Failure.kind(e);
            if (failures.merge(kind, 1, Integer::sum) == 1) {
                e.printStackTrace();
            }
        }
    }

    /** One line: the counts, other failures by kind, and what was wrong. */
    public synchronized String report() {
        return name + " right " + right + " refused " + refused + " wrong " + wrong.size()
                + " hung " + (isHung() ? 1 : 0) + " other " + failures + " " + wrong;
    }
}
