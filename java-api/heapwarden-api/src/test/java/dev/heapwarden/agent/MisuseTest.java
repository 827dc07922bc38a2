package dev.heapwarden.agent;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class MisuseTest {
    private static final long MINUTE_NANOS = 60_000_000_000L;

    @ParameterizedTest
    @ValueSource(longs = {0, 1, -5, Long.MAX_VALUE, Long.MIN_VALUE})
    void a_kind_is_logged_once_in_a_minute(long start) {
        Misuse misuse = new Misuse(new Ledger());
        assertTrue(misuse.due(Misuse.TWICE, start));
        assertFalse(misuse.due(Misuse.TWICE, start + MINUTE_NANOS - 2));
        assertTrue(misuse.due(Misuse.ORDER, start), "each kind has a minute of its own");
        assertTrue(misuse.due(Misuse.TWICE, start + MINUTE_NANOS + 1));
    }

    @Test
    void every_kind_has_a_text() {
        Misuse misuse = new Misuse(new Ledger());
        for (int kind = Misuse.TWICE; kind <= Misuse.LISTENERS; kind++) {
            misuse.report(kind);
        }
    }
}
