package dev.heapwarden.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.platform.testkit.engine.EngineExecutionResults;

final class WithoutAgentTest {
    private static void assertSkipped(int expected, EngineExecutionResults results) {
        List<String> reasons = Kit.reasons(results);
        assertEquals(expected, reasons.size());
        assertEquals(0, results.testEvents().started().count());
        for (String reason : reasons) {
            assertTrue(
                    reason.contains("-agentpath:/path/to/libheapwarden.so=listen=off"), reason);
        }
    }

    @Test
    void a_test_with_a_limit_is_skipped_with_the_flag_to_add() {
        assertSkipped(3, Kit.run(Samples.Holding.class));
    }

    @Test
    void a_class_with_a_limit_is_skipped_as_a_whole() {
        assertSkipped(1, Kit.run(Samples.Modest.class));
    }

    @Test
    void a_test_without_one_runs() {
        Kit.run(Samples.Free.class)
                .testEvents()
                .assertStatistics(all -> all.succeeded(1).skipped(0));
    }

    @Test
    void a_size_that_is_none_is_an_error() {
        List<Throwable> failures = Kit.failures(Kit.run(Samples.Misspelt.class));
        assertEquals(1, failures.size());
        StringBuilder said = new StringBuilder();
        for (Throwable at = failures.get(0); at != null; at = at.getCause()) {
            said.append(at.getMessage()).append('\n');
        }
        assertTrue(said.toString().contains("\"64MB\" is not a size"), said.toString());
    }

    @Test
    void a_test_that_must_not_leak_is_skipped_too() {
        assertSkipped(1, Kit.run(Samples.Unrepeatable.class));
    }

    @Test
    void too_few_runs_are_an_error() {
        List<Throwable> failures = Kit.failures(Kit.run(Samples.Misconfigured.class));
        assertEquals(1, failures.size());
        StringBuilder said = new StringBuilder();
        for (Throwable at = failures.get(0); at != null; at = at.getCause()) {
            said.append(at.getMessage()).append('\n');
        }
        assertTrue(said.toString().contains("runs must be from 4 to 10000"), said.toString());
    }
}
