package dev.heapwarden.demo.grow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.openjdk.jol.info.GraphLayout;

class HoardTest {
    @Test
    void its_truth_is_the_size_of_its_graph() {
        Hoard hoard = new Hoard(64 << 20);
        assertEquals(GraphLayout.parseInstance(hoard).totalSize(), hoard.bytes());
        for (int round = 0; round < 5; round++) {
            for (int i = 0; i < 200; i++) {
                assertTrue(hoard.add());
            }
            assertEquals(GraphLayout.parseInstance(hoard).totalSize(), hoard.bytes());
        }
        hoard.clear();
        assertEquals(GraphLayout.parseInstance(hoard).totalSize(), hoard.bytes());
    }

    @Test
    void it_stops_at_its_bound_and_starts_again_when_cleared() {
        Hoard hoard = new Hoard(1 << 20);
        while (hoard.add()) {
            // Until it is full.
        }
        long fullBytes = hoard.bytes();
        assertFalse(hoard.add());
        assertEquals(fullBytes, hoard.bytes());
        hoard.clear();
        assertTrue(hoard.add());
    }
}
