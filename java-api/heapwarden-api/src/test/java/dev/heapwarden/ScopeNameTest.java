package dev.heapwarden;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.agent.AgentRule;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ScopeNameTest {
    @ParameterizedTest
    @ValueSource(strings = {"a", "tenant-42", "a b", "a_", "Łódź", "客户", "x\uD83D\uDE00", "…"})
    void good_names(String name) {
        assertNull(ScopeName.fault(name));
        Heapwarden.enter(name).close();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "", " ", " a", "a ", "\u00a0a", "a\u3000", "_a", "_other", "a/b", "/", "a\nb",
                "a\u0000", "\u007f", "a\u0085b", "a\u2028b", "\uD83D", "a\uDE00b", "\uDE00\uD83D"
            })
    void bad_names(String name) {
        String said =
                assertThrows(IllegalArgumentException.class, () -> Heapwarden.enter(name))
                        .getMessage();
        assertTrue(said.contains("1 to 200 bytes of UTF-8"), said);
        assertThrows(IllegalArgumentException.class, () -> Heapwarden.run(name, () -> {}));
        assertThrows(IllegalArgumentException.class, () -> Heapwarden.call(name, () -> 1));
    }

    @Test
    void bytes_count_and_not_characters() {
        assertNull(ScopeName.fault("a".repeat(200)));
        assertTrue(ScopeName.fault("a".repeat(201)).contains("longer"));
        assertNull(ScopeName.fault("é".repeat(100)));
        assertTrue(ScopeName.fault("é".repeat(101)).contains("longer"));
        assertNull(ScopeName.fault("\uD83D\uDE00".repeat(50)));
        assertTrue(ScopeName.fault("\uD83D\uDE00".repeat(50) + "a").contains("longer"));
        assertTrue(ScopeName.fault("a".repeat(100_000_000)).contains("longer"));
    }

    /** Random texts from corners of Unicode: the copies say the same, and the bytes are right. */
    @Test
    void the_agent_has_the_same_rule() {
        char[] corners = "a/_ \n\u007f\u0080\u00a0\u07ff\u0800\u2028\u3000\uD83D\uDE00\uffff"
                .toCharArray();
        Random random = new Random(4);
        int good = 0;
        for (int round = 0; round < 200_000; round++) {
            StringBuilder text = new StringBuilder();
            int length = random.nextInt(8) == 0 ? random.nextInt(210) : random.nextInt(6);
            char[] from = random.nextBoolean() ? corners : new char[] {'a', 'é', '客'};
            for (int at = 0; at < length; at++) {
                text.append(from[random.nextInt(from.length)]);
            }
            String name = text.toString();
            String fault = ScopeName.fault(name);
            assertEquals(AgentRule.fault(name), fault);
            if (fault == null) {
                good++;
                assertTrue(name.getBytes(StandardCharsets.UTF_8).length <= 200, name);
            }
        }
        assertTrue(good > 10_000, "good ones: " + good);
    }
}
