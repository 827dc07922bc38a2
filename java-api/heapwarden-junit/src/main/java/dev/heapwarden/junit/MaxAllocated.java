package dev.heapwarden.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * The bytes a test may allocate in all, freed or not: its method, and threads that it makes. On a class
 * it is the limit of each of its tests; one on the method counts instead.
 *
 * <p>Allocations of JUnit and the JDK to call the method count, too: some 100 KiB for the first one, next to
 * nothing for others. Where allocations are sampled, a test
 * fails only if it is over the limit by more than three standard errors; with {@code [sampling]
 * interval = "exact"} in the agent's policy every allocation is counted.
 *
 * @since 0.1
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@ExtendWith(HeapLimits.class)
public @interface MaxAllocated {
    /**
     * The limit, as in the policy file.
     *
     * @return such as {@code 64MiB}, {@code 1.5GiB} or {@code 4096} (bytes)
     */
    String value();
}
