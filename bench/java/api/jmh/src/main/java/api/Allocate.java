package api;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.Scope;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Measures the cost of an allocation, the agent's samples included, in a scope and where none was entered. */
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
    public void tearDown() throws Exception {
        if (open != null) {
            open.close();
        }
        String runFile = System.getProperty("bench.run-file");
        if (runFile != null) {
            tellCallback(Path.of(runFile));
        }
    }

    /** Prints what the agent itself took for a sample, in this JVM: scope, median, 99 % in ns. */
    private void tellCallback(Path runFile) throws Exception {
        String listen = find("\"listen\":\"([^\"]+)\"", Files.readString(runFile));
        URI accounts = URI.create("http://" + listen + "/api/v1/accounts");
        String json =
                HttpClient.newHttpClient()
                        .send(HttpRequest.newBuilder(accounts).build(), BodyHandlers.ofString())
                        .body();
        System.out.printf(
                "%ncallback %s %s %s%n",
                scope,
                find("\"callback_p50_ns\":([0-9]+)", json),
                find("\"callback_p99_ns\":([0-9]+)", json));
    }

    private static String find(String pattern, String text) {
        Matcher matcher = Pattern.compile(pattern).matcher(text);
        if (!matcher.find()) {
            throw new IllegalStateException("no " + pattern + " in " + text);
        }
        return matcher.group(1);
    }

    /** An array of 1 KiB. */
    @Benchmark
    public byte[] kibibyte() {
        return new byte[1024 - 16];
    }
}
