package dev.heapwarden.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.Heapwarden;
import java.net.http.HttpResponse;
import java.time.Duration;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Run where the JVM has the agent; see the POM's profile. The application is over its limit. */
final class WithAgentTest {
    private static final long BOUND_NANOS = Duration.ofMinutes(1).toNanos();
    private static final long REST_MILLIS = 50;

    /** Over the limit of 48 MiB for sure. */
    private static final int MAX_MIB = 112;

    @BeforeAll
    static void the_agent_is_there() {
        assertTrue(Heapwarden.isActive(), "this test is for a JVM with the agent");
    }

    @Test
    void an_application_on_servlets_is_turned_away_and_works_again() throws Exception {
        try (Site site = Site.onServlets()) {
            assertDoor(site);
        }
    }

    @Test
    void a_reactive_application_is_turned_away_and_works_again() throws Exception {
        try (Site site = Site.reactive()) {
            assertDoor(site);
        }
    }

    private static void assertDoor(Site site) throws Exception {
        for (int mib = 0; mib < MAX_MIB && site.get("/hold").statusCode() == 200; mib++) {
            Thread.sleep(REST_MILLIS);
        }
        until(site, 503, "/light");
        int cameIn = 0;
        int turnedAway = 0;
        for (int time = 0; time < 60; time++) {
            int served = site.shelf().served.get();
            HttpResponse<String> response = site.get("/light");
            // A service that asks by itself has no reserve: a probe that is let in may meet an error.
            if (response.statusCode() == 200 || response.statusCode() == 500) {
                cameIn++;
            } else {
                turnedAway++;
                assertTurnedAway(response);
                assertEquals(served, site.shelf().served.get(), "no controller runs");
            }
            Thread.sleep(REST_MILLIS);
        }
        assertTrue(cameIn >= 1, "there are probes");
        assertTrue(turnedAway >= 1, cameIn + " came in, none was turned away");
        until(site, 200, "/drop");
        opens(site);
    }

    private static void assertTurnedAway(HttpResponse<String> response) {
        assertEquals(503, response.statusCode());
        String seconds = response.headers().firstValue("Retry-After").orElseThrow();
        assertTrue(Long.parseLong(seconds) >= 1, seconds);
        String type = response.headers().firstValue("Content-Type").orElse("");
        assertTrue(type.startsWith("text/plain"), type);
        assertEquals(
                "This service is over its memory limit. Try again in " + seconds + " s.\n",
                response.body());
    }

    private static void until(Site site, int status, String path) throws Exception {
        long begun = System.nanoTime();
        while (site.get(path).statusCode() != status) {
            assertTrue(System.nanoTime() - begun < BOUND_NANOS, path + " is not " + status);
            Thread.sleep(REST_MILLIS);
        }
    }

    /** The account is open again: everything comes in. */
    private static void opens(Site site) throws Exception {
        long begun = System.nanoTime();
        int inARow = 0;
        while (inARow < 40) {
            inARow = site.get("/light").statusCode() == 200 ? inARow + 1 : 0;
            assertTrue(System.nanoTime() - begun < BOUND_NANOS, "it is not open");
            Thread.sleep(inARow == 0 ? REST_MILLIS : 0);
        }
    }
}
