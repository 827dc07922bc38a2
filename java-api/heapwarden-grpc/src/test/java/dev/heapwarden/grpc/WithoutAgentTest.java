package dev.heapwarden.grpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.heapwarden.Heapwarden;
import org.junit.jupiter.api.Test;

final class WithoutAgentTest {
    @Test
    void every_call_goes_in() throws Exception {
        assertFalse(Heapwarden.isActive());
        try (Site site = new Site()) {
            for (int mib = 0; mib < 64; mib++) {
                assertEquals("done", site.call("hog", "hold"));
            }
            assertEquals(64, site.served.get());
        }
    }
}
