package dev.heapwarden.grpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.Heapwarden;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Run where the JVM has the agent; see the POM's profile. One tenant is over its limit. */
final class WithAgentTest {
    private static final long BOUND_NANOS = Duration.ofMinutes(2).toNanos();
    private static final long REST_MILLIS = 50;

    /** Over the limit of 32 MiB for sure. */
    private static final int MAX_MIB = 96;

    private Site site;

    @BeforeAll
    static void the_agent_is_there() {
        assertTrue(Heapwarden.isActive(), "this test is for a JVM with the agent");
    }

    @BeforeEach
    void the_tenant_fills_up_until_it_is_turned_away() throws Exception {
        site = new Site();
        fill("hog");
    }

    private void fill(String tenant) throws Exception {
        for (int mib = 0; mib < MAX_MIB && status(tenant, "hold") != Status.Code.UNAVAILABLE; ) {
            mib++;
            Thread.sleep(REST_MILLIS);
        }
        until(Status.Code.UNAVAILABLE, tenant, "light");
    }

    @AfterEach
    void the_site_ends() {
        site.close();
    }

    private Status.Code status(String tenant, String order) {
        try {
            assertEquals("done", site.call(tenant, order));
            return Status.Code.OK;
        } catch (StatusRuntimeException failed) {
            return failed.getStatus().getCode();
        }
    }

    private void until(Status.Code wanted, String tenant, String order) throws Exception {
        long begun = System.nanoTime();
        for (Status.Code answer; (answer = status(tenant, order)) != wanted; ) {
            assertTrue(
                    System.nanoTime() - begun < BOUND_NANOS,
                    order + " is " + answer + ", not " + wanted + ": " + Heapwarden.account(tenant));
            Thread.sleep(REST_MILLIS);
        }
    }

    /** The place of a probe that has ended is free: another comes in, long before a lease of 30 s is over. */
    private void isFree(String tenant) throws Exception {
        long ended = System.nanoTime();
        until(Status.Code.OK, tenant, "light");
        long seconds = Duration.ofNanos(System.nanoTime() - ended).toSeconds();
        assertTrue(seconds < 10, "it took " + seconds + " s");
    }

    @Test
    void a_tenant_is_turned_away_before_its_method_runs_and_works_again() throws Exception {
        int cameIn = 0;
        int turnedAway = 0;
        for (int time = 0; time < 60; time++) {
            int served = site.served.get();
            try {
                site.call("hog", "light");
                cameIn++;
            } catch (StatusRuntimeException failed) {
                assertEquals(Status.Code.UNAVAILABLE, failed.getStatus().getCode());
                turnedAway++;
                assertEquals(served, site.served.get(), "no method runs");
                assertTold(failed);
            }
            assertEquals("done", site.call("calm", "light"));
            Thread.sleep(REST_MILLIS);
        }
        assertTrue(cameIn >= 1, "there are probes");
        assertTrue(turnedAway >= 1, cameIn + " came in, none was turned away");
        // The client's library tries again when the server said.
        assertEquals("done", site.callRetrying("hog", "drop"));
        opens();
    }

    private static void assertTold(StatusRuntimeException failed) {
        Metadata.Key<String> pushback =
                Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);
        Metadata trailers = failed.getTrailers();
        assertTrue(trailers != null);
        long millis = Long.parseLong(trailers.get(pushback));
        assertTrue(millis >= 1_000 && millis <= 60_000, "" + millis);
        String said = failed.getStatus().getDescription();
        assertTrue(said != null && said.startsWith("This service is over its memory limit."), said);
    }

    /** A probe is inside until its call has ended. */
    @Test
    void a_probe_that_goes_on_keeps_others_out() throws Exception {
        CompletableFuture<Status.Code> probe = null;
        StreamObserver<String> inside = null;
        for (int time = 0; inside == null && time < 600; time++) {
            probe = CompletableFuture.supplyAsync(() -> status("hog", "wait"));
            inside = site.waiting.poll(2 * REST_MILLIS, TimeUnit.MILLISECONDS);
        }
        assertTrue(inside != null, "it comes in");
        // Longer than the longest pause after a probe.
        long begun = System.nanoTime();
        while (System.nanoTime() - begun < Duration.ofSeconds(3).toNanos()) {
            assertEquals(Status.Code.UNAVAILABLE, status("hog", "light"));
            Thread.sleep(REST_MILLIS);
        }
        inside.onNext("done");
        inside.onCompleted();
        assertEquals(Status.Code.OK, probe.get(1, TimeUnit.MINUTES));
        isFree("hog");
        until(Status.Code.OK, "hog", "drop");
        opens();
    }

    @Test
    void a_probe_ends_with_its_call_whichever_way_that_ends() throws Exception {
        StreamObserver<String> inside = null;
        Future<String> call = null;
        for (int time = 0; inside == null && time < 600; time++) {
            call = site.callLater("hog", "wait");
            inside = site.waiting.poll(2 * REST_MILLIS, TimeUnit.MILLISECONDS);
        }
        assertTrue(inside != null, "it comes in");
        call.cancel(true);
        isFree("hog");
        until(Status.Code.UNKNOWN, "hog", "fail");
        isFree("hog");
        // An interceptor that comes first fails when the call has begun, so that no listener hears of it.
        until(Status.Code.UNKNOWN, "hog", "broken");
        isFree("hog");
    }

    /** Code of an application that nothing spares but the allowance of what came in, on a thread that did not ask. */
    @Test
    void a_call_that_came_in_is_refused_beyond_its_allowance_only() throws Exception {
        fill("torn");
        // Its method is known from then on.
        until(Status.Code.UNKNOWN, "torn", "waste");
        isFree("torn");
        int cameIn = 0;
        for (int time = 0; time < 100; time++) {
            Status.Code answer = status("torn", "make");
            if (answer != Status.Code.UNAVAILABLE) {
                assertEquals(Status.Code.OK, answer);
                cameIn++;
            }
            Thread.sleep(REST_MILLIS);
        }
        assertTrue(cameIn >= 2, cameIn + " came in");
        until(Status.Code.UNKNOWN, "torn", "waste");
        isFree("torn");
    }

    /** The account is open again: everything comes in. */
    private void opens() throws Exception {
        long begun = System.nanoTime();
        int inARow = 0;
        while (inARow < 40) {
            inARow = status("hog", "light") == Status.Code.OK ? inARow + 1 : 0;
            assertTrue(
                    System.nanoTime() - begun < BOUND_NANOS,
                    "it is not open: " + Heapwarden.account("hog"));
            Thread.sleep(inARow == 0 ? REST_MILLIS : 0);
        }
    }
}
