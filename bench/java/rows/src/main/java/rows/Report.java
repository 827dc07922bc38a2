package rows;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;

/** The time and the processor time of the timed iterations of a row. */
final class Report {
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final String row;
    private final long checksum;
    private final List<Long> iterationNs = new ArrayList<>();
    private long operations;
    private final long cpuBeforeNs = PROCESS.getProcessCpuTime();
    private final long allocatedBeforeBytes = Allocation.bytes();
    private long wallNs;
    private long cpuNs;
    private long allocatedBytes;

    /** CPU time and allocation begin to count; between iterations too. */
    Report(String row, long checksum) {
        this.row = row;
        this.checksum = checksum;
    }

    void iteration(long tookNs, long operations) {
        iterationNs.add(tookNs);
        wallNs += tookNs;
        this.operations += operations;
    }

    /** They are over. */
    void end() {
        cpuNs = PROCESS.getProcessCpuTime() - cpuBeforeNs;
        allocatedBytes = Allocation.bytes() - allocatedBeforeBytes;
    }

    /** One line. No text in it needs escapes. */
    String json() {
        StringJoiner each = new StringJoiner(",", "[", "]");
        iterationNs.forEach(ns -> each.add(ns.toString()));
        return String.format(
                Locale.ROOT,
                "{\"row\":\"%s\",\"checksum\":\"%016x\",\"iterations\":%d,\"wall_ns\":%d,\"cpu_ns\":%d,"
                        + "\"allocated_bytes\":%d,\"iteration_ns\":%s,\"operations\":%d}",
                row,
                checksum,
                iterationNs.size(),
                wallNs,
                cpuNs,
                allocatedBytes,
                each,
                operations);
    }
}
