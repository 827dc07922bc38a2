package dev.heapwarden.junit;

import dev.heapwarden.Heapwarden;
import java.lang.reflect.Method;
import java.util.Optional;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.DynamicTestInvocationContext;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.opentest4j.AssertionFailedError;

/**
 * Holds tests to {@link MaxLive} and {@link MaxAllocated}, which register it. Without the agent such
 * tests are skipped; an annotation that is wrong is an error all the same.
 *
 * @since 0.1
 */
public final class HeapLimits implements ExecutionCondition, InvocationInterceptor {
    private static final String ABSENT =
            "memory limits want the agent Heapwarden: start the tests' JVM with"
                    + " -agentpath:/path/to/libheapwarden.so=listen=off (Maven: <argLine> of"
                    + " maven-surefire-plugin; Gradle: jvmArgs of the test task); to count every"
                    + " allocation, name a policy with [sampling] interval = \"exact\" too:"
                    + " ...=listen=off,config=/path/to/heapwarden.toml";

    /** Called by JUnit. */
    public HeapLimits() {}

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        if (Limits.of(context).isEmpty()) {
            return ConditionEvaluationResult.enabled("no memory limit");
        }
        return Heapwarden.isActive()
                ? ConditionEvaluationResult.enabled("the agent Heapwarden is there")
                : ConditionEvaluationResult.disabled(ABSENT);
    }

    @Override
    public void interceptTestMethod(
            Invocation<Void> invocation,
            ReflectiveInvocationContext<Method> method,
            ExtensionContext context)
            throws Throwable {
        held(invocation, context);
    }

    @Override
    public void interceptTestTemplateMethod(
            Invocation<Void> invocation,
            ReflectiveInvocationContext<Method> method,
            ExtensionContext context)
            throws Throwable {
        held(invocation, context);
    }

    @Override
    public void interceptDynamicTest(
            Invocation<Void> invocation,
            DynamicTestInvocationContext test,
            ExtensionContext context)
            throws Throwable {
        held(invocation, context);
    }

    /** Runs a test; fails where it succeeds and is over a limit. */
    private static <T> T held(Invocation<T> invocation, ExtensionContext context) throws Throwable {
        Limits limits = Limits.of(context);
        if (limits.isEmpty()) {
            return invocation.proceed();
        }
        Measurement.Measured<T> measured = Measurement.of(invocation::proceed);
        Optional<String> failure = Verdict.of(limits, measured.figures);
        if (failure.isPresent()) {
            throw new AssertionFailedError(failure.get());
        }
        return measured.result;
    }
}
