package dev.heapwarden.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.Heapwarden;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.platform.testkit.engine.EngineExecutionResults;
import org.opentest4j.AssertionFailedError;

/** Run where the JVM has the agent; see the POM's profile. */
final class WithAgentTest {
    @BeforeAll
    static void the_agent_is_there() {
        assertTrue(Heapwarden.isActive(), "this test is for a JVM with the agent");
    }

    private static List<String> messages(Class<?> tests, int expected) {
        EngineExecutionResults results = Kit.run(tests);
        List<Throwable> failures = Kit.failures(results);
        assertEquals(expected, failures.size(), results.allEvents().list().toString());
        for (Throwable failure : failures) {
            assertEquals(AssertionFailedError.class, failure.getClass(), failure.toString());
        }
        return failures.stream().map(Throwable::getMessage).collect(Collectors.toList());
    }

    @Test
    void tests_that_hold_too_much_fail() {
        List<String> said = messages(Samples.Holding.class, 3);
        for (String message : said) {
            assertTrue(message.startsWith("@MaxLive: the test held at "), message);
            assertTrue(message.contains("its limit is 4.0 MiB (4194304 bytes)"), message);
            assertTrue(message.contains(" 8.0 MiB (83"), message);
            assertTrue(message.contains("every allocation is counted"), message);
            assertTrue(message.contains("byte[]"), message);
        }
        long peaks = said.stream().filter(message -> message.contains("while it ran")).count();
        assertEquals(1, peaks, said.toString());
    }

    @Test
    void tests_that_allocate_too_much_fail() {
        for (String message : messages(Samples.Allocating.class, 4)) {
            // With what JUnit and the JDK take to call a method for the first time.
            assertTrue(message.startsWith("@MaxAllocated: the test allocated 8."), message);
            assertTrue(message.contains("byte[]"), message);
        }
    }

    @Test
    void tests_that_keep_their_limits_pass() {
        Kit.run(Samples.Modest.class)
                .testEvents()
                .assertStatistics(all -> all.succeeded(2).failed(0).skipped(0));
    }

    @Test
    void a_test_that_fails_by_itself_says_what_it_said() {
        List<Throwable> failures = Kit.failures(Kit.run(Samples.Failing.class));
        assertEquals("by itself", failures.get(0).getMessage());
    }

    @Test
    void tests_that_leak_fail_and_name_the_class() {
        String session = Samples.Session.class.getName();
        for (String message : messages(Samples.Leaking.class, 7)) {
            assertTrue(
                    message.startsWith("@NoLeak: each run of the test leaves "), message);
            String first = message.substring(0, message.indexOf('\n'));
            assertTrue(
                    first.contains(" of " + session) || first.contains("$$Lambda"), message);
            assertTrue(message.contains(session), message);
            assertTrue(message.contains("byte[]"), message);
            assertTrue(message.contains("every allocation is counted"), message);
        }
    }

    @Test
    void caches_that_are_bounded_do_not_leak() {
        Kit.run(Samples.Caching.class)
                .testEvents()
                .assertStatistics(all -> all.succeeded(36).failed(0).skipped(0));
    }

    @Test
    void a_test_that_fails_in_a_later_run_says_which() {
        Throwable failure = Kit.failures(Kit.run(Samples.Unrepeatable.class)).get(0);
        assertEquals("by itself", failure.getMessage());
        assertTrue(
                failure.getSuppressed()[0].getMessage().startsWith("@NoLeak: this was run 3 of"),
                failure.getSuppressed()[0].toString());
    }
}
