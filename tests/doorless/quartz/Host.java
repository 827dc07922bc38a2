import app.Hold;
import doorless.Loader;
import doorless.Target;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.JobExecutionException;
import org.quartz.Scheduler;
import org.quartz.SchedulerException;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;
import org.quartz.listeners.JobListenerSupport;

/** Jobs of an application that hold what they make. The client is in the same JVM. */
public final class Host implements Target {
    private final Scheduler scheduler;
    private final BlockingQueue<Optional<Exception>> ended = new LinkedBlockingQueue<>();

    private Host(Scheduler scheduler) throws SchedulerException {
        this.scheduler = scheduler;
        scheduler
                .getListenerManager()
                .addJobListener(
                        new JobListenerSupport() {
                            @Override
                            public String getName() {
                                return "ended";
                            }

                            @Override
                            public void jobWasExecuted(
                                    JobExecutionContext context, JobExecutionException failed) {
                                ended.add(Optional.ofNullable(failed));
                            }
                        });
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("org.quartz.threadPool.threadCount", "4");
        System.setProperty("org.quartz.scheduler.skipUpdateCheck", "true");
        Scheduler scheduler = StdSchedulerFactory.getDefaultScheduler();
        scheduler.start();
        Loader.serve(new Host(scheduler));
    }

    @Override
    public void load(int number) throws Exception {
        JobDetail job =
                JobBuilder.newJob(Hold.class)
                        .withIdentity("job-" + number)
                        .usingJobData("number", number)
                        .build();
        scheduler.scheduleJob(job, TriggerBuilder.newTrigger().startNow().build());
        Optional<Exception> failed = ended.take();
        if (failed.isPresent()) {
            throw failed.get();
        }
    }

    @Override
    public void delete(int number) {
        Hold.delete(number);
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
