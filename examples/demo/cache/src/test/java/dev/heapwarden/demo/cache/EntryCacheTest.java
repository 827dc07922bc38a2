package dev.heapwarden.demo.cache;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.openjdk.jol.info.GraphLayout;

class EntryCacheTest {
    private static final long MAXIMUM_BYTES = 4 << 20;

    @Test
    void its_truth_is_the_size_of_its_graph() {
        EntryCache cache = new EntryCache(MAXIMUM_BYTES);
        assertEquals(GraphLayout.parseInstance(cache).totalSize(), cache.bytes());
        for (int round = 0; round < 5; round++) {
            for (int i = 0; i < 300; i++) {
                cache.fill();
            }
            assertEquals(GraphLayout.parseInstance(cache).totalSize(), cache.bytes());
        }
        cache.clear();
        assertEquals(GraphLayout.parseInstance(cache).totalSize(), cache.bytes());
        assertEquals(0, cache.entries());
    }

    @Test
    void once_warm_it_stays_just_under_its_bound() {
        EntryCache cache = new EntryCache(MAXIMUM_BYTES);
        long emptyBytes = cache.bytes();
        for (int i = 0; i < 20_000; i++) {
            cache.fill();
            long entryBytes = cache.bytes() - emptyBytes;
            assertTrue(entryBytes <= MAXIMUM_BYTES, "bytes: " + entryBytes);
        }
        assertTrue(cache.bytes() - emptyBytes > MAXIMUM_BYTES - (256 << 10));
    }
}
