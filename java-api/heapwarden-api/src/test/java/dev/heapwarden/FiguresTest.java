package dev.heapwarden;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

final class FiguresTest {
    private static long[] figures() {
        return new long[] {10, 20, 3, 4, 50, -1, 1, 7, 8, 90, 100, 110, 120, 13, 14, 15};
    }

    @Test
    void a_reading_has_every_figure_in_its_place() {
        long[] figures = figures();
        AccountReading reading = new AccountReading("shop", figures);
        figures[0] = -7;
        assertEquals("shop", reading.account());
        assertEquals(10, reading.liveBytes());
        assertEquals(20, reading.chargedBytes());
        assertEquals(3, reading.standardErrorBytes());
        assertEquals(4, reading.liveObjects());
        assertEquals(OptionalLong.of(50), reading.softLimitBytes());
        assertEquals(OptionalLong.empty(), reading.limitBytes());
        assertEquals(AccountReading.State.SUSPECT, reading.state());
        assertEquals(7, reading.refusals());
        assertEquals(8, reading.wouldRefuse());
        assertEquals(90, reading.allocatedBytes());
        assertEquals(100, reading.allocatedObjects());
        assertEquals(110, reading.treeLiveBytes());
        assertEquals(120, reading.treeChargedBytes());
        assertEquals(13, reading.treeStandardErrorBytes());
        assertEquals(14, reading.liveStandardErrorBytes());
        assertEquals(15, reading.treeLiveStandardErrorBytes());
    }

    @Test
    void readings_are_values() {
        AccountReading reading = new AccountReading("shop", figures());
        assertEquals(reading, new AccountReading("shop", figures()));
        assertEquals(reading.hashCode(), new AccountReading("shop", figures()).hashCode());
        assertNotEquals(reading, new AccountReading("blog", figures()));
        long[] more = figures();
        more[13]++;
        assertNotEquals(reading, new AccountReading("shop", more));
        assertNotEquals(reading, null);
        assertEquals(
                "account \"shop\": live 10 bytes, standard error 14, charged 20, standard error 3,"
                        + " SUSPECT",
                reading.toString());
    }

    /** A later agent may have more of either. */
    @Test
    void what_is_unknown_is_no_error() {
        long[] figures = figures();
        figures[6] = 17;
        assertEquals(AccountReading.State.OVER, new AccountReading("shop", figures).state());
        assertFalse(Pressure.known(4));
        assertFalse(Pressure.known(-1));
    }

    @Test
    void pressure_has_every_figure_in_its_place() {
        Pressure pressure = new Pressure("shop/a", 3, new long[] {1, 2, 3, -1, 5});
        assertEquals("shop/a", pressure.account());
        assertEquals(Pressure.Kind.SOFT_RECOVERED, pressure.kind());
        assertEquals(1, pressure.liveBytes());
        assertEquals(2, pressure.chargedBytes());
        assertEquals(3, pressure.standardErrorBytes());
        assertEquals(OptionalLong.empty(), pressure.softLimitBytes());
        assertEquals(OptionalLong.of(5), pressure.limitBytes());
    }
}
