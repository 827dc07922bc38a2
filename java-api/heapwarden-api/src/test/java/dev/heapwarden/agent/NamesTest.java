package dev.heapwarden.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

final class NamesTest {
    private static final long SECOND_NANOS = 1_000_000_000L;

    private final Ledger ledger = new Ledger();

    private Names names(int most) {
        return new Names(ledger, new WeakReference<>(null), most);
    }

    @Test
    void a_name_has_one_context() {
        Names names = names(10);
        assertNull(names.known("a"));
        Context a = names.make("a", 0);
        assertSame(a, names.known("a"));
        assertSame(a, names.make("a", 0));
        assertNotSame(a, names.make("b", 0));
        assertEquals(2, ledger.opened());
    }

    @Test
    void beyond_the_bound_names_are_folded_into_one() {
        Names names = names(3);
        for (int name = 0; name < 3; name++) {
            ledger.charge(names.make("held-" + name, 0).purse);
        }
        Context folded = names.make("one more", 0);
        assertEquals(Names.OTHER, folded.name);
        for (int name = 0; name < 1_000; name++) {
            assertSame(folded, names.make("hostile-" + name, name * SECOND_NANOS));
        }
        assertEquals(3, names.size());
        assertEquals(4, ledger.opened(), "a folded name opens no purse");
    }

    @Test
    void names_that_hold_nothing_and_are_not_entered_make_room() {
        Names names = names(3);
        ledger.charge(names.make("held", 0).purse);
        names.make("idle", 0);
        Context busy = names.make("busy", 0);
        // The first sweep finds all of them entered since they were made.
        assertEquals(Names.OTHER, names.make("new", 0).name);
        busy.entered = true;
        assertEquals("new", names.make("new", 2 * SECOND_NANOS).name);
        assertNull(names.known("idle"));
        assertSame(busy, names.known("busy"));
        assertEquals("held", names.known("held").name);
    }

    @Test
    void the_table_is_swept_once_a_second_at_the_most() {
        Names names = names(1);
        names.make("idle", 0);
        assertEquals(Names.OTHER, names.make("new", 0).name);
        assertEquals(Names.OTHER, names.make("new", SECOND_NANOS - 1).name);
        assertEquals("new", names.make("new", SECOND_NANOS).name);
    }

    @Test
    void where_the_agent_has_no_room_names_are_folded_until_it_has() {
        Names names = names(10);
        ledger.room = 0;
        Context none = names.make("a", 0);
        assertEquals(Names.OTHER, none.name);
        assertEquals(0, none.purse);
        ledger.room = 1;
        // Folded still, but into an account now.
        assertEquals(1, names.make("a", 1).purse);
        ledger.room = 2;
        assertEquals("a", names.make("a", SECOND_NANOS).name);
    }

    @Test
    void threads_that_race_for_a_name_get_one_context() throws InterruptedException {
        Names names = names(100);
        Set<Context> seen = Collections.synchronizedSet(
                Collections.newSetFromMap(new IdentityHashMap<>()));
        CountDownLatch start = new CountDownLatch(1);
        Thread[] threads = new Thread[8];
        for (int at = 0; at < threads.length; at++) {
            threads[at] = new Thread(() -> {
                await(start);
                for (int name = 0; name < 100; name++) {
                    seen.add(names.make("name-" + name, 0));
                }
            });
            threads[at].start();
        }
        start.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(100, seen.size());
        assertEquals(100, ledger.opened());
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
