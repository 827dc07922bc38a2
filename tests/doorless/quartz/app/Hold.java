package app;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.quartz.Job;
import org.quartz.JobExecutionContext;

/** A job that holds a unit. */
public final class Hold implements Job {
    private static final Map<Integer, byte[][]> HELD = new ConcurrentHashMap<>();

    @Override
    public void execute(JobExecutionContext context) {
        int number = context.getMergedJobDataMap().getInt("number");
        byte[][] unit = new byte[32][];
        for (int i = 0; i < unit.length; i++) {
            unit[i] = new byte[1_008];
        }
        HELD.put(number, unit);
    }

    public static void delete(int number) {
        HELD.remove(number);
    }

    public static void clear() {
        HELD.clear();
    }

    public static long count() {
        return HELD.size();
    }
}
