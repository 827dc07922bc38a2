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
import org.junit.platform.commons.support.ReflectionSupport;
import org.opentest4j.AssertionFailedError;

/**
 * Holds tests to {@link MaxLive}, {@link MaxAllocated} and {@link NoLeak}, which register it. Without the agent such
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
        boolean isFree = Limits.of(context).isEmpty() & Repeats.of(context).isEmpty();
        if (isFree) {
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
        held(invocation, () -> invoke(method), context);
    }

    @Override
    public void interceptTestTemplateMethod(
            Invocation<Void> invocation,
            ReflectiveInvocationContext<Method> method,
            ExtensionContext context)
            throws Throwable {
        held(invocation, () -> invoke(method), context);
    }

    @Override
    public void interceptDynamicTest(
            Invocation<Void> invocation,
            DynamicTestInvocationContext test,
            ExtensionContext context)
            throws Throwable {
        held(invocation, test.getExecutable()::execute, context);
    }

    private static void invoke(ReflectiveInvocationContext<Method> method) {
        ReflectionSupport.invokeMethod(
                method.getExecutable(),
                method.getTarget().orElse(null),
                method.getArguments().toArray());
    }

    /**
     * Runs a test; fails where it succeeds and is over a limit, or leaks.
     *
     * @param again runs its body once more
     */
    private static void held(Invocation<Void> invocation, Series.Body again, ExtensionContext context)
            throws Throwable {
        Limits limits = Limits.of(context);
        Optional<Repeats> repeats = Repeats.of(context);
        if (limits.isEmpty() && repeats.isEmpty()) {
            invocation.proceed();
            return;
        }
        try (Measurement measurement = Measurement.open()) {
            invocation.proceed();
            if (!limits.isEmpty()) {
                fail(Verdict.of(limits, measurement.figures()));
            }
            if (repeats.isPresent()) {
                fail(new Series(measurement, repeats.get(), again).verdict(context::publishReportEntry));
            }
        }
    }

    private static void fail(Optional<String> failure) {
        if (failure.isPresent()) {
            throw new AssertionFailedError(failure.get());
        }
    }
}
