package dev.heapwarden.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Optional;
import org.junit.jupiter.api.Test;

final class VerdictTest {
    private static final long MIB = 1 << 20;

    private static Figures exact(long live, long peak, long allocated) {
        return new Figures(
                new long[] {live, live, 0, 1, allocated, 2, peak, 1, 0, 0, 0},
                new Object[] {"byte[]", live, 1L, allocated, "int[]", 0L, 0L, 3 * MIB});
    }

    private static Figures sampled(long live, long error, long peak, long allocated) {
        return sampled(live, error, peak, allocated, MIB, MIB);
    }

    private static Figures sampled(
            long live, long error, long peak, long allocated, long ofPeak, long ofAllocated) {
        return new Figures(
                new long[] {
                    live, live, error, 1, allocated, 2, peak, 0, 64 << 10, ofPeak, ofAllocated
                },
                new Object[0]);
    }

    private static Limits live(long bytes) {
        return new Limits(bytes, null);
    }

    private static Limits allocated(long bytes) {
        return new Limits(null, bytes);
    }

    @Test
    void what_is_at_its_limit_is_not_over() {
        Figures figures = exact(MIB, MIB, 5 * MIB);
        assertEquals(Optional.empty(), Verdict.of(live(MIB), figures));
        assertEquals(Optional.empty(), Verdict.of(allocated(5 * MIB), figures));
        assertTrue(Verdict.of(live(MIB - 1), figures).isPresent());
        assertTrue(Verdict.of(allocated(5 * MIB - 1), figures).isPresent());
    }

    @Test
    void an_estimate_convicts_by_three_standard_errors_alone() {
        assertEquals(
                Optional.empty(),
                Verdict.of(live(10 * MIB), sampled(13 * MIB, MIB, 0, 0)));
        assertTrue(
                Verdict.of(live(10 * MIB), sampled(13 * MIB + 1, MIB, 0, 0)).isPresent());
        // Each figure by its own.
        Figures figures = sampled(0, 0, 16 * MIB, 16 * MIB, MIB, 2 * MIB);
        assertEquals(Optional.empty(), Verdict.of(live(13 * MIB), figures));
        assertTrue(Verdict.of(live(13 * MIB - 1), figures).isPresent());
        assertEquals(Optional.empty(), Verdict.of(allocated(10 * MIB), figures));
        assertTrue(Verdict.of(allocated(10 * MIB - 1), figures).isPresent());
        // Where the end was the peak, the peak's error is that of the end.
        assertEquals(3, sampled(5, 3, 5, 5, 9, 9).peakStandardErrorBytes);
    }

    @Test
    void the_message_has_limit_figures_and_classes() {
        String said = Verdict.of(live(MIB), exact(2 * MIB, 4 * MIB, 8 * MIB)).orElseThrow();
        assertTrue(
                said.startsWith(
                        "@MaxLive: the test held at its end 2.0 MiB (2097152 bytes), standard error"
                                + " 0 B; its limit is 1.0 MiB (1048576 bytes)"),
                said);
        assertTrue(said.contains("at most at a collection 4.0 MiB"), said);
        assertTrue(said.contains("allocated 8.0 MiB in 2 objects"), said);
        assertTrue(said.contains("every allocation is counted"), said);
        assertTrue(said.indexOf("byte[]") < said.indexOf("int[]"), said);
    }

    @Test
    void a_peak_is_told_as_one() {
        String said = Verdict.of(live(MIB), exact(0, 2 * MIB, 8 * MIB)).orElseThrow();
        assertTrue(said.contains("held at a collection while it ran 2.0 MiB"), said);
    }

    @Test
    void what_was_allocated_orders_the_classes_by_that() {
        String said = Verdict.of(allocated(MIB), exact(0, 0, 2 * MIB)).orElseThrow();
        assertTrue(said.startsWith("@MaxAllocated: the test allocated 2.0 MiB"), said);
        assertTrue(said.indexOf("int[]") < said.indexOf("byte[]"), said);
    }

    @Test
    void another_agents_figures_are_refused() {
        assertThrows(
                IllegalStateException.class, () -> new Figures(new long[8], new Object[0]));
    }
}
