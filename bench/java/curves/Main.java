package curves;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;

/**
 * Times an amount of work by the wall clock and by the process's processor time. Waits for a line
 * from the bench after each line that says where it is: ready, begin, end.
 */
final class Main {
    private static final long WARM_UP_NS = 1_000_000_000L;
    private static final int LEAST_OPERATIONS = 64;
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Main() {}

    /**
     * Arguments: operations, or 0 to find out how many take the processor time that is next;
     * milliseconds; the work; what the work needs to know.
     */
    public static void main(String[] args) throws Exception {
        long operations = Long.parseLong(args[0]);
        long targetNs = Long.parseLong(args[1]) * 1_000_000L;
        Thread.currentThread().setContextClassLoader(Services.named("shop"));
        Work work = Works.named(args[2], args, 3);
        pause("ready");
        long batch = warm(work);
        if (operations == 0) {
            operations = amount(work, batch, targetNs);
            System.out.println("{\"operations\":" + operations + "}");
        }
        pause("begin");
        long cpuNs = PROCESS.getProcessCpuTime();
        long wallNs = System.nanoTime();
        long checksum = work.run(operations);
        wallNs = System.nanoTime() - wallNs;
        cpuNs = PROCESS.getProcessCpuTime() - cpuNs;
        long allocatedBytes = operations * new ArraySizes().bytes(work.arrayLength());
        report(operations, checksum, allocatedBytes, wallNs, cpuNs);
        pause("end");
    }

    /** Prints what was measured as one line for the bench. */
    static void report(
            long operations, long checksum, long allocatedBytes, long wallNs, long cpuNs) {
        System.out.printf(
                "{\"operations\":%d,\"checksum\":%d,\"allocated_bytes\":%d,\"wall_ns\":%d,\"cpu_ns\":%d}%n",
                operations, checksum, allocatedBytes, wallNs, cpuNs);
    }

    /** Prints a line and waits until the bench has looked at the JVM from outside. */
    static void pause(String line) throws IOException {
        System.out.println(line);
        System.in.read();
    }

    /** Process CPU time, in nanoseconds. */
    static long cpuNs() {
        return PROCESS.getProcessCpuTime();
    }

    /** Works until the code is compiled; a number of operations that takes some time. */
    private static long warm(Work work) throws InterruptedException {
        long batch = LEAST_OPERATIONS;
        long endNs = System.nanoTime() + WARM_UP_NS;
        while (System.nanoTime() < endNs) {
            long begunNs = System.nanoTime();
            work.run(batch);
            if (System.nanoTime() - begunNs < WARM_UP_NS / 20) {
                batch *= 2;
            }
        }
        return batch;
    }

    /** By processor time: a machine that has other work to do changes nothing. */
    private static long amount(Work work, long batch, long targetNs) throws InterruptedException {
        long cpuNs = 0;
        long done = 0;
        while (cpuNs < targetNs / 4) {
            long before = cpuNs();
            work.run(batch);
            cpuNs += cpuNs() - before;
            done += batch;
        }
        return (long) ((double) done * targetNs / cpuNs);
    }
}
