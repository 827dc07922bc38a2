package dev.heapwarden.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * The limit of the heap memory that a test, and threads that it makes, allocate and that survives.
 * On a class it is the limit of each of its tests; one on the method counts instead.
 *
 * <p>The test fails if it held more at its end, after a collection which this extension asks for, or
 * at a collection while it ran. What was held between two collections alone is not seen; so with
 * {@code [sampling] interval = "exact"} in the agent's policy the figure at the end is the same in
 * every run, and the one while it ran depends on when the JVM collects. Where allocations are
 * sampled, a test fails only if it is over the limit by more than three standard errors.
 *
 * <p>Only the test method is measured, not what runs before and after each.
 *
 * @since 0.1
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@ExtendWith(HeapLimits.class)
public @interface MaxLive {
    /**
     * The limit, as in the policy file.
     *
     * @return such as {@code 64MiB}, {@code 1.5GiB} or {@code 4096} (bytes)
     */
    String value();
}
