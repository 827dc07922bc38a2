package victim.tenant;

import java.util.TimerTask;

/** A task of a timer. */
public final class Alarm extends TimerTask {
    private final Task task = new Task();

    @Override
    public void run() {
        task.run();
    }

    public Task task() {
        return task;
    }
}
