package dev.heapwarden.servlet.jakarta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import dev.heapwarden.Heapwarden;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.FilterChain;
import java.lang.management.ManagementFactory;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Run where the JVM has the agent; see the POM's profile. One application is over its limit. */
final class WithAgentTest {
    private static final long BOUND_NANOS = Duration.ofMinutes(1).toNanos();
    private static final long REST_MILLIS = 50;

    /** Over the limit of 32 MiB for sure. */
    private static final int MAX_MIB = 96;

    @TempDir private Path folder;
    private Site site;

    @BeforeAll
    static void the_agent_is_there() {
        assertTrue(Heapwarden.isActive(), "this test is for a JVM with the agent");
    }

    @BeforeEach
    void the_shop_fills_up_until_it_is_turned_away() throws Exception {
        site = new Site(folder);
        for (int mib = 0; mib < MAX_MIB && site.get("/shop/hold").statusCode() == 200; mib++) {
            Thread.sleep(REST_MILLIS);
        }
        until(503, "/shop/light");
    }

    @AfterEach
    void the_site_ends() throws Exception {
        site.close();
    }

    /** Sends the request again until it is answered so. */
    private HttpResponse<String> until(int status, String path) throws Exception {
        long begun = System.nanoTime();
        while (true) {
            HttpResponse<String> response = site.get(path);
            if (response.statusCode() == status) {
                return response;
            }
            assertTrue(response.statusCode() == 200 || response.statusCode() == 503);
            assertTrue(
                    System.nanoTime() - begun < BOUND_NANOS,
                    path + " is not " + status + ": " + Heapwarden.account("/shop"));
            Thread.sleep(REST_MILLIS);
        }
    }

    @Test
    void who_is_over_is_turned_away_before_its_code_runs_and_works_again() throws Exception {
        HttpResponse<String> away = until(503, "/shop/light");
        long seconds = Long.parseLong(away.headers().firstValue("Retry-After").orElseThrow());
        assertTrue(seconds >= 1, "" + seconds);
        assertTrue(away.headers().firstValue("Content-Type").orElse("").startsWith("text/plain"));
        assertEquals(
                "This service is over its memory limit. Try again in " + seconds + " s.\n",
                away.body());
        int cameIn = 0;
        int turnedAway = 0;
        for (int time = 0; time < 60; time++) {
            int served = site.shop.served.get();
            int filtered = site.filtered.get();
            if (site.get("/shop/light").statusCode() == 200) {
                cameIn++;
            } else {
                turnedAway++;
                assertEquals(served, site.shop.served.get(), "no servlet runs");
                assertEquals(filtered, site.filtered.get(), "no filter runs");
            }
            assertEquals(200, site.get("/other/light").statusCode());
            assertEquals(200, site.get("/shop/health").statusCode(), "the policy admits it");
            Thread.sleep(REST_MILLIS);
        }
        assertTrue(cameIn >= 1, "there are probes");
        assertTrue(turnedAway >= 1, cameIn + " came in, none was turned away");
        until(200, "/shop/forward");
        until(200, "/shop/drop");
        opens();
    }

    /** A probe is inside until its asynchronous request has ended. */
    @Test
    void a_probe_that_goes_on_asynchronously_keeps_others_out() throws Exception {
        AsyncContext inside = null;
        CompletableFuture<HttpResponse<String>> probe = null;
        for (int time = 0; inside == null && time < 600; time++) {
            probe = site.getLater("/shop/wait");
            inside = site.shop.waiting.poll(2 * REST_MILLIS, TimeUnit.MILLISECONDS);
        }
        assertTrue(inside != null, "it comes in");
        // Longer than the longest pause after a probe.
        long begun = System.nanoTime();
        while (System.nanoTime() - begun < Duration.ofSeconds(3).toNanos()) {
            assertEquals(503, site.get("/shop/light").statusCode());
            assertEquals(503, site.delete("/shop/light").statusCode());
            Thread.sleep(REST_MILLIS);
        }
        inside.complete();
        assertEquals(200, probe.get(1, TimeUnit.MINUTES).statusCode());
        // The client may know before the container tells its listeners.
        long ended = System.nanoTime();
        until(200, "/shop/drop");
        long seconds = Duration.ofNanos(System.nanoTime() - ended).toSeconds();
        assertTrue(seconds < 20, "a lease is 30 s, and it took " + seconds);
        opens();
    }

    /** While nobody is over its limit. */
    @Test
    void asking_allocates_nothing() throws Exception {
        until(200, "/shop/drop");
        opens();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long own = Thread.currentThread().getId();
        AdmissionFilter filter = new AdmissionFilter();
        FilterChain chain = (request, response) -> {};
        long allocated = Long.MAX_VALUE;
        // The first rounds load classes and compile.
        for (int round = 0; allocated > 0 && round < 20; round++) {
            long before = threads.getThreadAllocatedBytes(own);
            for (int time = 0; time < 10_000; time++) {
                filter.doFilter(null, null, chain);
                Heapwarden.admission("GET", "/light").close();
            }
            allocated = threads.getThreadAllocatedBytes(own) - before;
        }
        // The cost of measuring alone: far less than a byte a request.
        assertTrue(allocated < 1_000, "10,000 requests allocated " + allocated + " bytes");
    }

    /** The account is open again: everything comes in. */
    private void opens() throws Exception {
        long begun = System.nanoTime();
        int inARow = 0;
        while (inARow < 40) {
            inARow = site.get("/shop/light").statusCode() == 200 ? inARow + 1 : 0;
            assertTrue(
                    System.nanoTime() - begun < BOUND_NANOS,
                    "it is not open: " + Heapwarden.account("/shop"));
            Thread.sleep(inARow == 0 ? REST_MILLIS : 0);
        }
    }
}
