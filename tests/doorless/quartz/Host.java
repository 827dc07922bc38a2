import app.Hold;
import doorless.Loader;
import doorless.Target;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.Scheduler;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;
import victim.Protocol;

/** Jobs of an application that hold what they make. The client is in the same JVM. */
public final class Host implements Target {
    private final Scheduler scheduler;

    private Host(Scheduler scheduler) {
        this.scheduler = scheduler;
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("org.quartz.threadPool.threadCount", "4");
        System.setProperty("org.quartz.scheduler.skipUpdateCheck", "true");
        Scheduler scheduler = StdSchedulerFactory.getDefaultScheduler();
        scheduler.start();
        Protocol.serve(Loader.commands(new Host(scheduler)));
        System.exit(0);
    }

    @Override
    public void load(int number) throws Exception {
        JobDetail job =
                JobBuilder.newJob(Hold.class)
                        .withIdentity("job-" + number)
                        .usingJobData("number", number)
                        .build();
        scheduler.scheduleJob(job, TriggerBuilder.newTrigger().startNow().build());
        Hold.await(number);
    }

    @Override
    public void drop() {
        Hold.clear();
    }

    @Override
    public long count() {
        return Hold.count();
    }
}
