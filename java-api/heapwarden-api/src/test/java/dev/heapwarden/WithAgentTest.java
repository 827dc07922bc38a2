package dev.heapwarden;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.internal.Link;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Run where the JVM has the agent; see the POM's profile. A purse says which scope a thread is in. */
final class WithAgentTest {
    private static final long BOUND_SECONDS = 60;
    private static final int MIB = 1 << 20;

    private static byte[] held;

    @BeforeAll
    static void the_agent_is_there() {
        assertTrue(Heapwarden.isActive(), "this test is for a JVM with the agent");
    }

    @AfterEach
    void no_scope_is_left_open() {
        held = null;
        assertEquals(0, Link.purse());
    }

    private static <T> T result(Future<T> future) throws Exception {
        return future.get(BOUND_SECONDS, TimeUnit.SECONDS);
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long begun = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(
                    System.nanoTime() - begun < TimeUnit.SECONDS.toNanos(BOUND_SECONDS),
                    "not within a minute");
            Thread.sleep(20);
        }
    }

    /** The purse of a scope, which is the same each time that it is entered. */
    private static int purse(String name) {
        try (Scope scope = Heapwarden.enter(name)) {
            assertNotEquals(null, scope);
            return Link.purse();
        }
    }

    @Test
    void a_scope_has_one_purse_and_another_has_another() {
        assertNotEquals(0, purse("a"));
        assertEquals(purse("a"), purse("a"));
        assertEquals(purse("a"), purse(new StringBuilder("a").toString()));
        assertNotEquals(purse("a"), purse("b"));
    }

    @Test
    void the_innermost_scope_pays_in_whatever_order_they_are_closed() {
        Scope outer = Heapwarden.enter("outer");
        Scope inner = Heapwarden.enter("inner");
        assertEquals(purse("inner"), Link.purse());
        outer.close();
        assertEquals(purse("inner"), Link.purse());
        outer.close();
        inner.close();
        inner.close();
    }

    @Test
    void closing_on_another_thread_does_nothing() throws InterruptedException {
        Scope scope = Heapwarden.enter("mine");
        Mask mask = Heapwarden.mask();
        Thread thread = new Thread(() -> {
            scope.close();
            mask.close();
        });
        thread.start();
        thread.join();
        assertEquals(purse("mine"), Link.purse());
        mask.close();
        scope.close();
    }

    @Test
    void run_and_call_leave_the_scope_whatever_happens() throws Exception {
        int expected = purse("task");
        Heapwarden.run("task", () -> assertEquals(expected, Link.purse()));
        assertEquals(expected, Heapwarden.call("task", Link::purse));
        assertThrows(
                ArithmeticException.class,
                () ->
                        Heapwarden.run(
                                "task",
                                () -> {
                                    throw new ArithmeticException();
                                }));
    }

    @Test
    void the_sixty_fifth_scope_does_nothing() {
        List<Scope> scopes = new ArrayList<>();
        for (int depth = 0; depth < 64; depth++) {
            scopes.add(Heapwarden.enter("deep"));
        }
        scopes.add(Heapwarden.enter("deeper"));
        assertEquals(64, scopes.stream().filter(scope -> Link.purse() != 0).count() - 1);
        for (int depth = 64; depth >= 0; depth--) {
            scopes.get(depth).close();
        }
    }

    @Test
    void children_inherit_where_that_was_chosen() throws InterruptedException {
        int[] seen = new int[3];
        Thread none;
        Thread child;
        try (Scope scope = Heapwarden.enter("parent")) {
            assertNotEquals(null, scope);
            none = new Thread(() -> seen[0] = Link.purse());
        }
        try (Scope scope = Heapwarden.enter("parent", Inheritance.CHILD_THREADS)) {
            assertNotEquals(null, scope);
            child =
                    new Thread(
                            () -> {
                                Heapwarden.run("own", () -> seen[1] = Link.purse());
                                seen[2] = Link.purse();
                            });
        }
        none.start();
        child.start();
        none.join();
        child.join();
        assertEquals(0, seen[0]);
        assertEquals(purse("own"), seen[1]);
        assertEquals(purse("parent"), seen[2]);
    }

    @Test
    void tasks_take_their_scope_along() throws Exception {
        int expected = purse("tenant");
        Runnable[] runnable = new Runnable[1];
        int[] seen = new int[1];
        Callable<Integer> callable;
        Supplier<Integer> supplier;
        try (Scope scope = Heapwarden.enter("tenant")) {
            assertNotEquals(null, scope);
            runnable[0] =
                    Heapwarden.wrap(
                            () -> {
                                seen[0] = Link.purse();
                            });
            callable = Heapwarden.wrap((Callable<Integer>) Link::purse);
            supplier = Heapwarden.wrap((Supplier<Integer>) Link::purse);
        }
        runnable[0].run();
        assertEquals(expected, seen[0]);
        assertEquals(expected, callable.call());
        assertEquals(expected, supplier.get());
        Callable<Integer> outside = Heapwarden.wrap((Callable<Integer>) Link::purse);
        assertEquals(0, Heapwarden.call("tenant", outside), "wrapped outside of all scopes");
    }

    @Test
    void executors_run_a_task_in_the_scope_of_its_submission() throws Exception {
        Integer expected = purse("tenant");
        ScheduledExecutorService executor =
                Heapwarden.wrap(Executors.newSingleThreadScheduledExecutor());
        List<Future<Integer>> futures = new ArrayList<>();
        BlockingQueue<Integer> periodic = new LinkedBlockingQueue<>();
        Future<?> repeated;
        try (Scope scope = Heapwarden.enter("tenant")) {
            assertNotEquals(null, scope);
            futures.add(executor.submit((Callable<Integer>) Link::purse));
            futures.addAll(executor.invokeAll(List.of(Link::purse, Link::purse)));
            futures.add(executor.schedule((Callable<Integer>) Link::purse, 1, TimeUnit.MILLISECONDS));
            repeated =
                    executor.scheduleWithFixedDelay(
                            () -> periodic.add(Link.purse()), 0, 1, TimeUnit.MILLISECONDS);
            Callable<Integer> any = Link::purse;
            assertEquals(expected, executor.invokeAny(List.of(any)));
        }
        for (Future<Integer> future : futures) {
            assertEquals(expected, result(future));
        }
        for (int time = 0; time < 3; time++) {
            assertEquals(expected, periodic.poll(BOUND_SECONDS, TimeUnit.SECONDS));
        }
        repeated.cancel(false);
        assertEquals(0, result(executor.submit((Callable<Integer>) Link::purse)));
        executor.shutdownNow();
    }

    @Test
    void stages_follow_the_chain_and_pinned_ones_do_not() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        Executor wrapped = Heapwarden.wrap((Executor) pool);
        CompletableFuture<Void> gate = new CompletableFuture<>();
        CompletableFuture<int[]> chain;
        try (Scope scope = Heapwarden.enter("first")) {
            assertNotEquals(null, scope);
            chain =
                    CompletableFuture.supplyAsync(
                            () -> {
                                gate.join();
                                return new int[] {Link.purse(), 0, 0};
                            },
                            wrapped);
        }
        try (Scope scope = Heapwarden.enter("second")) {
            assertNotEquals(null, scope);
            chain =
                    chain.thenApplyAsync(
                                    seen -> {
                                        seen[1] = Link.purse();
                                        return seen;
                                    },
                                    wrapped)
                            .thenApplyAsync(
                                    seen -> {
                                        seen[2] = Link.purse();
                                        return seen;
                                    },
                                    Heapwarden.pin(pool));
        }
        gate.complete(null);
        int[] seen = result(chain);
        assertEquals(purse("first"), seen[0]);
        assertEquals(purse("first"), seen[1], "follows the chain");
        assertEquals(purse("second"), seen[2], "pinned where it was added");
        pool.shutdown();
    }

    @Test
    void what_a_scope_holds_is_read() throws InterruptedException {
        Heapwarden.run("holder", () -> held = new byte[8 * MIB]);
        await(
                () ->
                        Heapwarden.account("holder")
                                .filter(reading -> reading.chargedBytes() >= 8 * MIB)
                                .isPresent());
        AccountReading reading = Heapwarden.account("holder").orElseThrow();
        assertEquals("holder", reading.account());
        assertEquals(0, reading.standardErrorBytes());
        assertEquals(0, reading.liveStandardErrorBytes());
        assertTrue(reading.allocatedBytes() >= 8 * MIB, reading.toString());
        assertTrue(reading.treeChargedBytes() >= reading.chargedBytes(), reading.toString());
        assertEquals(AccountReading.State.OPEN, reading.state());
        Heapwarden.run(
                "holder",
                () -> {
                    assertEquals("holder", Heapwarden.currentAccount());
                    assertEquals("holder", Heapwarden.current().orElseThrow().account());
                });
        assertTrue(Heapwarden.account("there is no such account").isEmpty());
    }

    @Test
    void a_listener_hears_of_the_soft_limit_and_of_recovery() throws InterruptedException {
        BlockingQueue<Pressure> heard = new LinkedBlockingQueue<>();
        try (Registration registration = Heapwarden.listen("pressed", heard::add)) {
            assertNotEquals(null, registration);
            Heapwarden.run("pressed", () -> held = new byte[8 * MIB]);
            Pressure first = collecting(heard);
            assertEquals("pressed", first.account());
            assertEquals(Pressure.Kind.SOFT_LIMIT, first.kind());
            assertEquals(4 * MIB, first.softLimitBytes().orElseThrow());
            assertEquals(1024L * MIB, first.limitBytes().orElseThrow());
            assertTrue(first.chargedBytes() >= 8 * MIB, first.toString());
            held = null;
            assertEquals(Pressure.Kind.SOFT_RECOVERED, collecting(heard).kind());
        }
    }

    /** The next event, with collections to bring it about. */
    private static Pressure collecting(BlockingQueue<Pressure> heard) throws InterruptedException {
        for (long second = 0; second < BOUND_SECONDS; second++) {
            System.gc();
            Pressure next = heard.poll(1, TimeUnit.SECONDS);
            if (next != null) {
                return next;
            }
        }
        throw new AssertionError("nothing heard within a minute");
    }

    /**
     * Names that hold nothing make room once a second: then it takes more of them. In a service of its
     * own, so that the other tests' names have room.
     */
    @Test
    void a_hostile_number_of_names_is_folded() {
        Thread thread = Thread.currentThread();
        ClassLoader loader = thread.getContextClassLoader();
        thread.setContextClassLoader(new ClassLoader() {});
        try {
            fold();
        } finally {
            thread.setContextClassLoader(loader);
        }
    }

    private static void fold() {
        int before = purse("hostile-0");
        for (int name = 1; name < 1_000_000; name++) {
            int purse = purse("hostile-" + name);
            assertNotEquals(0, purse);
            if (purse == before) {
                assertTrue(name >= 9_000, "folded at name " + name);
                return;
            }
            before = purse;
        }
        throw new AssertionError("a million names have a million accounts");
    }
}
