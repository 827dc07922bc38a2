package dev.heapwarden.junit;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.List;
import java.util.stream.Collectors;
import org.junit.platform.testkit.engine.EngineExecutionResults;
import org.junit.platform.testkit.engine.EngineTestKit;
import org.junit.platform.testkit.engine.Event;

/** Runs test classes in JUnit's own kit. */
final class Kit {
    private Kit() {}

    static EngineExecutionResults run(Class<?> tests) {
        return EngineTestKit.engine("junit-jupiter").selectors(selectClass(tests)).execute();
    }

    /** Returns the errors that the tests failed with. */
    static List<Throwable> failures(EngineExecutionResults results) {
        return results.testEvents().failed().stream()
                .map(event -> event.getRequiredPayload(
                                org.junit.platform.engine.TestExecutionResult.class)
                        .getThrowable()
                        .orElseThrow())
                .collect(Collectors.toList());
    }

    /** Why tests or classes were skipped. */
    static List<String> reasons(EngineExecutionResults results) {
        return results.allEvents().skipped().stream()
                .map((Event event) -> event.getRequiredPayload(String.class))
                .collect(Collectors.toList());
    }
}
