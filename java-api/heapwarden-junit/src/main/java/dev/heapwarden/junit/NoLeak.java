package dev.heapwarden.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A test that must not leak: its body is run again and again, and nothing that it, and threads that it
 * makes, allocate may grow from run to run. On a class it is for each of its tests; one on the method
 * counts instead.
 *
 * <p>After {@link #warmUp} runs, what is live is counted by class, after a collection which this
 * extension asks for, and again after each quarter of {@link #runs} runs. A class grows if it has more
 * live bytes after each quarter than before it, by similar amounts. The test fails if that is so in a
 * second series of as many runs too, and names the classes, those of the application first. A cache
 * that is full after the runs to warm up does not grow, and neither does what is made once, or kept
 * until the next run. One that is still filling grows: give it more runs to warm up.
 *
 * <p>All runs are in one call of the test: methods with {@code @BeforeEach} and {@code @AfterEach} run
 * before the first and after the last, the arguments of a parameterised test are the same for each,
 * and a {@code @Timeout} is for all of them together. The body must be repeatable.
 *
 * <p>What is not seen: what threads allocate that were there before the test (a server started in
 * {@code @BeforeAll}); memory outside the heap; and, unless the agent's policy has {@code [sampling]
 * interval = "exact"}, leaks of less than about one sampling interval a run (with the default, 64 KiB).
 * Where allocations are sampled, the test's report says from which size on leaks are seen
 * ({@code heapwarden.no-leak}). What only soft references hold counts as held.
 *
 * @since 0.1
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@ExtendWith(HeapLimits.class)
public @interface NoLeak {
    /**
     * How often the body is run and watched. A test that seems to leak is run as often again.
     *
     * @return from 4 to 10,000; more see smaller leaks where allocations are sampled
     */
    int runs() default 20;

    /**
     * How often the body is run before, until caches are filled and classes are loaded.
     *
     * @return from 1 to 10,000
     */
    int warmUp() default 5;

    /**
     * How many bytes of each class may stay of each run.
     *
     * @return as in the policy file, such as {@code 1KiB} or {@code 64} (bytes)
     */
    String allow() default "0B";
}
