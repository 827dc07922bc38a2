package dev.heapwarden.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class SizeTest {
    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "4096, 4096",
        "4096B, 4096",
        "64KiB, 65536",
        "256MiB, 268435456",
        "1.5GiB, 1610612736",
        "2 TiB, 2199023255552",
        "0.0009765625KiB, 1",
        "007B, 7",
        "9223372036854775807, 9223372036854775807"
    })
    void sizes_are_powers_of_1024(String text, long bytes) {
        assertEquals(bytes, Size.parse(text));
        assertEquals(bytes, Size.parse(" " + text + " "));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "", " ", "MiB", "-1", "+1", "1e3", ".5MiB", "1.MiB", "1MB", "1M", "1k", "1mib",
                "1  MiB", "0.3B", "0.3KiB", "9223372036854775808", "8388608TiB", "1PiB", "1%",
                "0x10", "1_000", "١"
            })
    void everything_else_is_refused(String text) {
        String said =
                assertThrows(IllegalArgumentException.class, () -> Size.parse(text)).getMessage();
        assertTrue(said.startsWith("\"" + text + "\" is not a size: "), said);
    }

    @Test
    void a_hostile_number_costs_nothing() {
        assertThrows(
                IllegalArgumentException.class, () -> Size.parse("9".repeat(10_000_000) + "TiB"));
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0 B", "1023, 1023 B", "1024, 1.0 KiB", "1610612736, 1.5 GiB",
        "9223372036854775807, 8388608.0 TiB"
    })
    void figures_are_written_with_one_decimal(long bytes, String text) {
        assertEquals(text, Size.format(bytes));
    }
}
