package dev.heapwarden.netty;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.Heapwarden;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Run where the JVM has the agent; see the POM's profile. One service is over its limit. */
final class WithAgentTest {
    private static final long BOUND_NANOS = Duration.ofMinutes(1).toNanos();
    private static final long REST_MILLIS = 50;

    /** Over the limit of 32 MiB for sure. */
    private static final int MAX_MIB = 96;

    private Site site;

    @BeforeAll
    static void the_agent_is_there() {
        assertTrue(Heapwarden.isActive(), "this test is for a JVM with the agent");
    }

    @BeforeEach
    void the_service_fills_up_until_it_is_turned_away() throws Exception {
        site = new Site("shop");
        for (int mib = 0; mib < MAX_MIB && site.get("/hold") == 200; mib++) {
            Thread.sleep(REST_MILLIS);
        }
        until(503, "/light");
    }

    @AfterEach
    void the_site_ends() {
        site.close();
    }

    private void until(int status, String path) throws Exception {
        long begun = System.nanoTime();
        while (site.get(path) != status) {
            assertTrue(
                    System.nanoTime() - begun < BOUND_NANOS,
                    path + " is not " + status + ": " + Heapwarden.account("shop"));
            Thread.sleep(REST_MILLIS);
        }
    }

    @Test
    void who_is_over_is_turned_away_before_its_code_runs_and_works_again() throws Exception {
        int cameIn = 0;
        int turnedAway = 0;
        try (Site neighbour = new Site("other")) {
            for (int time = 0; time < 60; time++) {
                int served = site.served.get();
                // With a body and without one, on connections that are kept.
                HttpResponse<String> response =
                        time % 2 == 0
                                ? site.send("GET", "/light", 0)
                                : site.send("POST", "/light", 50_000);
                if (response.statusCode() == 200) {
                    cameIn++;
                } else {
                    turnedAway++;
                    assertTurnedAway(response);
                    assertEquals(served, site.served.get(), "no handler runs");
                }
                assertEquals(200, neighbour.get("/light"));
                Thread.sleep(REST_MILLIS);
            }
        }
        assertTrue(cameIn >= 1, "there are probes");
        assertTrue(turnedAway >= 1, cameIn + " came in, none was turned away");
        until(200, "/drop");
        opens();
    }

    private static void assertTurnedAway(HttpResponse<String> response) {
        assertEquals(503, response.statusCode());
        String seconds = response.headers().firstValue("Retry-After").orElseThrow();
        assertTrue(Long.parseLong(seconds) >= 1, seconds);
        assertEquals("text/plain", response.headers().firstValue("Content-Type").orElse(""));
        assertEquals(
                "This service is over its memory limit. Try again in " + seconds + " s.\n",
                response.body());
    }

    /** Of two requests sent at once the first is a probe: the other is answered after it, not before. */
    @Test
    void answers_come_in_the_order_of_the_requests() throws Exception {
        long begun = System.nanoTime();
        while (true) {
            assertTrue(System.nanoTime() - begun < BOUND_NANOS, "no probe");
            site.waiting.set(null);
            String requests =
                    "GET /wait HTTP/1.1\r\nHost: a\r\n\r\nGET /light HTTP/1.1\r\nHost: a\r\n\r\n";
            try (Socket socket = new Socket("127.0.0.1", site.port())) {
                socket.setSoTimeout(60_000);
                socket.getOutputStream().write(requests.getBytes(StandardCharsets.US_ASCII));
                if (isInside()) {
                    // A probe is inside until it is answered: longer than the longest pause.
                    for (int time = 0; time < 30; time++) {
                        assertEquals(503, site.get("/light"));
                        Thread.sleep(2 * REST_MILLIS);
                    }
                    assertEquals(0, socket.getInputStream().available(), "nothing is answered");
                    site.waiting.get().run();
                    String answers = all(socket.getInputStream());
                    int first = answers.indexOf("HTTP/1.1 200");
                    int second = answers.indexOf("HTTP/1.1 503");
                    assertEquals(0, first, answers);
                    assertNotEquals(-1, second, answers);
                    assertTrue(answers.indexOf("waited") < second, answers);
                    break;
                }
            }
            Thread.sleep(REST_MILLIS);
        }
        until(200, "/drop");
        opens();
    }

    /** The client goes away: its probe has ended, and another comes in before the lease is over. */
    @Test
    void a_probe_ends_with_its_connection() throws Exception {
        long begun = System.nanoTime();
        boolean inside = false;
        while (!inside) {
            assertTrue(System.nanoTime() - begun < BOUND_NANOS, "no probe");
            site.waiting.set(null);
            try (Socket socket = new Socket("127.0.0.1", site.port())) {
                String request = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";
                socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
                inside = isInside();
            }
            Thread.sleep(REST_MILLIS);
        }
        long gone = System.nanoTime();
        until(200, "/drop");
        long seconds = Duration.ofNanos(System.nanoTime() - gone).toSeconds();
        assertTrue(seconds < 20, "a lease is 30 s, and it took " + seconds);
        opens();
    }

    private boolean isInside() throws InterruptedException {
        for (int time = 0; time < 4 && site.waiting.get() == null; time++) {
            Thread.sleep(REST_MILLIS);
        }
        return site.waiting.get() != null;
    }

    private static String all(InputStream stream) throws IOException {
        return new String(stream.readAllBytes(), StandardCharsets.US_ASCII);
    }

    /** The account is open again: everything comes in. */
    private void opens() throws Exception {
        long begun = System.nanoTime();
        int inARow = 0;
        while (inARow < 40) {
            inARow = site.get("/light") == 200 ? inARow + 1 : 0;
            assertTrue(
                    System.nanoTime() - begun < BOUND_NANOS,
                    "it is not open: " + Heapwarden.account("shop"));
            Thread.sleep(inARow == 0 ? REST_MILLIS : 0);
        }
    }
}
