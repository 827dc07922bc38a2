package victim.tenant;

import java.util.concurrent.Executor;

/** An executor of the tenant's own, which allocates nothing. */
public final class Handoff implements Executor {
    @Override
    public void execute(Runnable command) {
        command.run();
    }
}
