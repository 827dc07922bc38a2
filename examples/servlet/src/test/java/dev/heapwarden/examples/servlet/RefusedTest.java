package dev.heapwarden.examples.servlet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.servlet.ServletException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.http.HttpResponse;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** With the agent's classes in the boot loader. */
final class RefusedTest {
    private static Host host;

    @BeforeAll
    static void start() throws Exception {
        host =
                new Host(
                        Map.of(
                                "oom", () -> refusal("MemoryQuotaExceededError"),
                                "error", () -> refusal("AllocationRefusedError"),
                                "exception", () -> refusal("MemoryQuotaExceededException"),
                                "wrapped", () -> new ServletException(new IllegalStateException(
                                        refusal("MemoryQuotaExceededError"))),
                                "own-oom", () -> new OutOfMemoryError("Java heap space"),
                                "own", () -> new IllegalStateException("the application's own")));
    }

    @AfterAll
    static void stop() throws Exception {
        host.close();
    }

    private static Throwable refusal(String name) {
        try {
            return (Throwable)
                    Class.forName("dev.heapwarden." + name, true, null)
                            .getConstructors()[0]
                            .newInstance("shop", 4L, 3L, 2L, 1L);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "filtered, oom, 7", "filtered, error, 7", "filtered, exception, 7", "filtered, wrapped, 7",
        "valved, oom, 8", "valved, error, 8", "valved, exception, 8", "valved, wrapped, 8",
    })
    void aRefusalIsAnswered(String context, String kind, String seconds) throws Exception {
        HttpResponse<String> answer = host.get("/" + context + "/?throw=" + kind);
        assertEquals(503, answer.statusCode());
        assertEquals(seconds, answer.headers().firstValue("Retry-After").orElse("none"));
        assertEquals("", answer.body());
        assertTrue(answer.headers().firstValue("ETag").isEmpty(), "headers of the failed answer");
        assertEquals("part", host.get("/" + context + "/").body());
    }

    /** Shows that the servlet itself does not answer so. */
    @Test
    void withoutHelpItIsNot() throws Exception {
        assertThrows(IOException.class, () -> host.get("/bare/?throw=oom"));
        assertEquals(500, host.get("/bare/?throw=error").statusCode());
        assertEquals(500, host.get("/bare/?throw=exception").statusCode());
    }

    @ParameterizedTest
    @ValueSource(strings = {"bare", "filtered", "valved"})
    void whatIsNoRefusalPasses(String context) throws Exception {
        assertEquals(500, host.get("/" + context + "/?throw=own").statusCode());
        assertThrows(IOException.class, () -> host.get("/" + context + "/?throw=own-oom"));
    }

    /** The client must see that the answer is cut off. */
    @ParameterizedTest
    @ValueSource(strings = {"filtered", "valved"})
    void aCommittedAnswerIsNotTouched(String context) {
        assertThrows(IOException.class, () -> host.get("/" + context + "/?throw=oom&commit=1"));
        assertThrows(IOException.class, () -> host.get("/" + context + "/?throw=error&commit=1"));
    }

    @Test
    void aChainThatBitesItsTailEnds() {
        RuntimeException one = new RuntimeException();
        one.initCause(new RuntimeException(one));
        assertTrue(!Refusals.caused(one));
    }

    @Test
    void recognisingOneAllocatesNothing() {
        com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        Throwable wrapped = new ServletException(refusal("MemoryQuotaExceededError"));
        assertTrue(Refusals.caused(wrapped));
        long id = Thread.currentThread().getId();
        threads.getThreadAllocatedBytes(id);
        long idle = -threads.getThreadAllocatedBytes(id) + threads.getThreadAllocatedBytes(id);
        long before = threads.getThreadAllocatedBytes(id);
        boolean caused = Refusals.caused(wrapped);
        long after = threads.getThreadAllocatedBytes(id);
        assertTrue(caused);
        assertEquals(idle, after - before);
    }
}
