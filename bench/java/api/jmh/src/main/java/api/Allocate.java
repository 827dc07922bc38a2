package api;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.Scope;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** What an allocation costs, and with it the agent's samples, in a scope and where none was entered. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@State(org.openjdk.jmh.annotations.Scope.Thread)
public class Allocate {
    /** {@code none}: no scope in this JVM; {@code entered}: the thread is in one. */
    @Param({"none", "entered"})
    public String scope;

    private Scope open;

    @Setup
    public void setUp() {
        if (scope.equals("entered")) {
            open = Heapwarden.enter("tenant-42");
        }
    }

    @TearDown
    public void tearDown() {
        if (open != null) {
            open.close();
        }
    }

    /** An array of 1 KiB. */
    @Benchmark
    public byte[] kibibyte() {
        return new byte[1024 - 16];
    }
}
