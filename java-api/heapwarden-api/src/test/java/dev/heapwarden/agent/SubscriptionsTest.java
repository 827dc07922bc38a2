package dev.heapwarden.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

final class SubscriptionsTest {
    private static final long BOUND_SECONDS = 60;

    private final Ledger ledger = new Ledger();
    private final Subscriptions subscriptions = new Subscriptions(ledger, new Misuse(ledger));

    private void announce(String account, String parent) {
        subscriptions.announce(
                new Object[] {account, parent, 1, new long[5]}, account, parent);
    }

    private static Object take(BlockingQueue<?> queue) throws InterruptedException {
        Object taken = queue.poll(BOUND_SECONDS, TimeUnit.SECONDS);
        assertNotNull(taken, "nothing within a minute");
        return taken;
    }

    @Test
    void a_listener_hears_of_its_account_and_of_those_beneath() throws InterruptedException {
        BlockingQueue<Object> heard = new LinkedBlockingQueue<>();
        Consumer<Object[]> receiver = event -> heard.add(event[0]);
        subscriptions.add(receiver, null, null, "shop");
        announce("blog", null);
        announce("shop", null);
        announce("blog/tenant", "blog");
        announce("shop/tenant", "shop");
        assertEquals("shop", take(heard));
        assertEquals("shop/tenant", take(heard));
        assertTrue(heard.isEmpty());
    }

    @Test
    void it_runs_on_a_masked_daemon_under_its_own_loader() throws InterruptedException {
        ClassLoader loader = new ClassLoader() {};
        BlockingQueue<Object> heard = new LinkedBlockingQueue<>();
        Consumer<Object[]> receiver =
                event -> {
                    Thread thread = Thread.currentThread();
                    heard.add(thread.isDaemon());
                    heard.add(thread.getContextClassLoader() == loader);
                    heard.add(Cells.CELLS.get().masks == 1);
                };
        subscriptions.add(receiver, loader, null, "shop");
        announce("shop", null);
        for (int fact = 0; fact < 3; fact++) {
            assertEquals(true, take(heard));
        }
    }

    @Test
    void one_that_is_stuck_holds_up_neither_the_agent_nor_others() throws InterruptedException {
        CountDownLatch release = new CountDownLatch(1);
        List<Object> late = new CopyOnWriteArrayList<>();
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch last = new CountDownLatch(1);
        Consumer<Object[]> stuck =
                event -> {
                    begun.countDown();
                    await(release);
                    late.add(event[2]);
                    if (event[2].equals(199)) {
                        last.countDown();
                    }
                };
        BlockingQueue<Object> heard = new LinkedBlockingQueue<>();
        Consumer<Object[]> quick = event -> heard.add(event[2]);
        subscriptions.add(stuck, null, null, "shop");
        subscriptions.add(quick, null, null, "shop");
        announce("shop", null);
        await(begun);
        assertEquals(1, take(heard));
        for (int event = 100; event < 200; event++) {
            subscriptions.announce(new Object[] {"shop", null, event, null}, "shop", null);
            assertEquals(event, take(heard));
        }
        release.countDown();
        await(last);
        // The first, and of those that waited the latest.
        assertEquals(1 + Subscription.MAX_WAITING, late.size());
        assertEquals(1, late.get(0));
        assertEquals(200 - Subscription.MAX_WAITING, late.get(1));
    }

    @Test
    void one_that_throws_hears_the_next_event() throws InterruptedException {
        BlockingQueue<Object> heard = new LinkedBlockingQueue<>();
        Consumer<Object[]> receiver =
                event -> {
                    heard.add(event[0]);
                    throw new AssertionError("as listeners do");
                };
        subscriptions.add(receiver, null, null, "shop");
        announce("shop", null);
        take(heard);
        announce("shop/a", "shop");
        assertEquals("shop/a", take(heard));
    }

    @Test
    void one_that_has_ended_hears_nothing_and_is_forgotten() throws InterruptedException {
        BlockingQueue<Object> heard = new LinkedBlockingQueue<>();
        Consumer<Object[]> receiver = event -> heard.add(event[0]);
        BlockingQueue<Object> others = new LinkedBlockingQueue<>();
        Consumer<Object[]> other = event -> others.add(event[0]);
        Subscription ended = subscriptions.add(receiver, null, null, "shop");
        assertTrue(ledger.listening);
        Subscription left = subscriptions.add(other, null, null, "shop");
        subscriptions.remove(ended);
        subscriptions.remove(ended);
        announce("shop", null);
        take(others);
        assertTrue(heard.isEmpty());
        assertEquals(1, subscriptions.size());
        subscriptions.remove(left);
        assertFalse(ledger.listening);
    }

    @Test
    void one_that_nobody_holds_is_forgotten() throws InterruptedException {
        subscriptions.add(event -> heardIn(this), null, null, "shop");
        Collected.await(
                () -> {
                    announce("blog", null);
                    return subscriptions.size() == 0;
                });
        assertFalse(ledger.listening);
    }

    @Test
    void an_account_without_a_name_is_asked_for_again() throws InterruptedException {
        ledger.account = "_unaccounted";
        BlockingQueue<Object> heard = new LinkedBlockingQueue<>();
        Consumer<Object[]> receiver = event -> heard.add(event[0]);
        Subscription mine = subscriptions.add(receiver, null, null, null);
        assertNull(mine.account());
        ledger.account = "shop";
        announce("blog", null);
        announce("shop", null);
        assertEquals("shop", take(heard));
        assertEquals("shop", mine.account());
        assertTrue(heard.isEmpty());
    }

    @Test
    void there_is_room_for_so_many() {
        Consumer<Object[]> receiver = event -> heardIn(this);
        for (int listener = 0; listener < Subscriptions.MAX; listener++) {
            assertNotNull(subscriptions.add(receiver, null, null, "shop"));
        }
        assertNull(subscriptions.add(receiver, null, null, "shop"));
    }

    private static void heardIn(Object test) {
        throw new AssertionError("heard in " + test);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(BOUND_SECONDS, TimeUnit.SECONDS));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
