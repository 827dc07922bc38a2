package dev.heapwarden;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledExecutorService;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

final class WithoutAgentTest {
    @Test
    void nothing_is_active_and_nothing_is_read() {
        assertFalse(Heapwarden.isActive());
        assertTrue(Heapwarden.admits());
        assertTrue(Heapwarden.admission().isGranted());
        assertEquals("_unaccounted", Heapwarden.currentAccount());
        assertEquals(Optional.empty(), Heapwarden.account("shop"));
        assertEquals(Optional.empty(), Heapwarden.current());
    }

    @Test
    void scopes_can_be_misused_without_harm() throws InterruptedException {
        Scope outer = Heapwarden.enter("outer");
        Scope inner = Heapwarden.enter("inner", Inheritance.CHILD_THREADS);
        outer.close();
        inner.close();
        inner.close();
        Scope elsewhere = Heapwarden.enter("elsewhere");
        Thread thread = new Thread(elsewhere::close);
        thread.start();
        thread.join();
        for (int depth = 0; depth < 1_000; depth++) {
            Heapwarden.enter("deep");
        }
    }

    @Test
    void a_profile_counts_nothing_and_belongs_to_its_thread() throws InterruptedException {
        Profile profile = Profile.begin();
        assertFalse(profile.isActive());
        profile.every(1, () -> fail("nobody is called"));
        assertThrows(IllegalArgumentException.class, () -> profile.every(0, () -> {}));
        assertEquals(List.of(), profile.read());
        assertEquals(Optional.empty(), profile.failure());
        Thread other =
                new Thread(() -> assertThrows(IllegalStateException.class, profile::close));
        List<Throwable> failures = new ArrayList<>();
        other.setUncaughtExceptionHandler((thread, failure) -> failures.add(failure));
        other.start();
        other.join();
        assertEquals(List.of(), failures);
        profile.close();
        profile.close();
        assertThrows(IllegalStateException.class, profile::read);
    }

    @Test
    void work_is_let_in_and_nothing_is_made_for_it() {
        Admission admission = Heapwarden.admission("GET", "/cart");
        assertTrue(admission.isGranted());
        assertFalse(admission.isProbe());
        assertEquals(0, admission.retryAfterMillis());
        assertEquals(0, admission.retryAfterSeconds());
        assertEquals("", admission.message());
        admission.close();
        admission.close();
        assertSame(admission, Heapwarden.admission());
    }

    /** The agent's answers, as the program gets them. */
    @Test
    void an_answer_is_a_probe_or_turns_away() {
        int[] ends = new int[1];
        Admission probe = Admission.of((Runnable) () -> ends[0]++);
        assertTrue(probe.isGranted());
        assertTrue(probe.isProbe());
        probe.close();
        assertEquals(1, ends[0]);
        Admission away = Admission.of(1_001L);
        assertFalse(away.isGranted());
        assertFalse(away.isProbe());
        assertEquals(1_001, away.retryAfterMillis());
        assertEquals(2, away.retryAfterSeconds());
        assertEquals(
                "This service is over its memory limit. Try again in 2 s.", away.message());
    }

    @Test
    void masks_can_be_closed_twice() {
        Mask mask = Heapwarden.mask();
        Mask nested = Heapwarden.mask();
        mask.close();
        nested.close();
        nested.close();
        mask.close();
    }

    @Test
    void tasks_run_and_what_they_throw_comes_through() throws Exception {
        int[] runs = new int[1];
        Heapwarden.run("tenant", () -> runs[0]++);
        assertEquals(1, runs[0]);
        assertEquals("result", Heapwarden.call("tenant", () -> "result"));
        IOException thrown = new IOException();
        assertSame(
                thrown,
                assertThrows(
                        IOException.class,
                        () ->
                                Heapwarden.call(
                                        "tenant",
                                        () -> {
                                            throw thrown;
                                        })));
    }

    @Test
    void wrapped_tasks_run() throws Exception {
        int[] runs = new int[1];
        Heapwarden.wrap(() -> {
                    runs[0]++;
                })
                .run();
        assertEquals(1, runs[0]);
        assertEquals("called", Heapwarden.wrap((Callable<String>) () -> "called").call());
        assertEquals("got", Heapwarden.wrap((Supplier<String>) () -> "got").get());
    }

    @Test
    void a_listener_is_not_called_and_can_be_closed() {
        Registration own = Heapwarden.listen(WithoutAgentTest::heard);
        Registration other = Heapwarden.listen("shop", WithoutAgentTest::heard);
        own.close();
        own.close();
        other.close();
    }

    @Test
    void null_is_refused_with_the_parameters_name() {
        assertNull("name", () -> Heapwarden.enter(null));
        assertNull("inheritance", () -> Heapwarden.enter("a", null));
        assertNull("task", () -> Heapwarden.run("a", null));
        assertNull("task", () -> Heapwarden.call("a", null));
        assertNull("task", () -> Heapwarden.wrap((Runnable) null));
        assertNull("task", () -> Heapwarden.wrap((Callable<?>) null));
        assertNull("task", () -> Heapwarden.wrap((Supplier<?>) null));
        assertNull("executor", () -> Heapwarden.wrap((Executor) null));
        assertNull("executor", () -> Heapwarden.wrap((ExecutorService) null));
        assertNull("executor", () -> Heapwarden.wrap((ScheduledExecutorService) null));
        assertNull("executor", () -> Heapwarden.pin(null));
        assertNull("method", () -> Heapwarden.admission(null, "/"));
        assertNull("path", () -> Heapwarden.admission("GET", null));
        assertNull("name", () -> Heapwarden.account(null));
        assertNull("listener", () -> Heapwarden.listen(null));
        assertNull("listener", () -> Heapwarden.listen("a", null));
        assertNull("account", () -> Heapwarden.listen(null, WithoutAgentTest::heard));
    }

    private static void assertNull(String parameter, Executable call) {
        assertEquals(parameter, assertThrows(NullPointerException.class, call::execute).getMessage());
    }

    private interface Executable {
        void execute() throws Throwable;
    }

    private static void heard(Pressure pressure) {
        throw new AssertionError("without the agent: " + pressure);
    }
}
