package dev.heapwarden.examples.servlet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Where there is no agent: the filter and the valve load, and nothing is any different. */
final class WithoutAgentTest {
    @Test
    void nothingIsDifferent() throws Exception {
        assertThrows(
                ClassNotFoundException.class,
                () -> Class.forName("dev.heapwarden.MemoryQuotaExceeded", false, null));
        Map<String, Host.Thrown> kinds =
                Map.of(
                        "own", IllegalStateException::new,
                        "own-oom", OutOfMemoryError::new,
                        "named-alike", Alike::new);
        try (Host host = new Host(kinds)) {
            for (String context : new String[] {"/bare", "/filtered", "/valved"}) {
                assertEquals("part", host.get(context + "/").body());
                assertEquals(500, host.get(context + "/?throw=own").statusCode());
                assertEquals(500, host.get(context + "/?throw=named-alike").statusCode());
                assertThrows(IOException.class, () -> host.get(context + "/?throw=own-oom"));
            }
        }
    }
}
