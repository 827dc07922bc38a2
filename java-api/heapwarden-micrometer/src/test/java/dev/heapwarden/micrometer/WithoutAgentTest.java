package dev.heapwarden.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.Scope;
import io.micrometer.context.ContextRegistry;
import io.micrometer.context.ContextSnapshotFactory;
import org.junit.jupiter.api.Test;

final class WithoutAgentTest {
    @Test
    void it_is_found_as_a_service() {
        assertTrue(
                ContextRegistry.getInstance().getThreadLocalAccessors().stream()
                        .anyMatch(accessor -> accessor.key().equals(ScopeAccessor.KEY)));
    }

    @Test
    void there_is_no_value() {
        Scope scope = Heapwarden.enter("tenant");
        assertNull(new ScopeAccessor().getValue());
        scope.close();
    }

    @Test
    void snapshots_do_no_harm() {
        int[] runs = new int[1];
        ContextSnapshotFactory.builder()
                .clearMissing(true)
                .build()
                .captureAll()
                .wrap(
                        () -> {
                            runs[0]++;
                        })
                .run();
        new ScopeAccessor().restore();
        assertEquals(1, runs[0]);
    }
}
