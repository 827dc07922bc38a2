package dev.heapwarden.netty;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.heapwarden.Heapwarden;
import org.junit.jupiter.api.Test;

final class WithoutAgentTest {
    @Test
    void every_request_goes_in() throws Exception {
        assertFalse(Heapwarden.isActive());
        try (Site site = new Site("shop")) {
            for (int mib = 0; mib < 64; mib++) {
                assertEquals(200, site.get("/hold"));
            }
            assertEquals(200, site.send("POST", "/light", 50_000).statusCode());
            assertEquals(65, site.served.get());
        }
    }
}
