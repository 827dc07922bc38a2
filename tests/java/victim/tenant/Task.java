package victim.tenant;

import java.util.concurrent.Callable;

/** Something that a thread of somebody else's runs. */
public final class Task implements Runnable, Callable<Integer> {
    private volatile int begun;
    private volatile int done;
    private volatile Object kept;

    @Override
    public void run() {
        begun = begun + 1;
        kept = new byte[100];
        done = done + 1;
    }

    @Override
    public Integer call() {
        run();
        return 11;
    }

    public int begun() {
        return begun;
    }

    public int done() {
        return done;
    }
}
