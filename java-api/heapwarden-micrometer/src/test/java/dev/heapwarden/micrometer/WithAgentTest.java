package dev.heapwarden.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.Scope;
import io.micrometer.context.ContextSnapshot;
import io.micrometer.context.ContextSnapshotFactory;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Run where the JVM has the agent; see the POM's profile. */
final class WithAgentTest {
    private final ContextSnapshotFactory factory = ContextSnapshotFactory.builder().build();
    private final String outside = Heapwarden.currentAccount();

    @BeforeAll
    static void the_agent_is_there() {
        assertTrue(Heapwarden.isActive(), "this test is for a JVM with the agent");
    }

    @Test
    void a_scope_follows_to_another_thread_and_ends_there() throws Exception {
        ExecutorService other = Executors.newSingleThreadExecutor();
        Scope scope = Heapwarden.enter("tenant");
        ContextSnapshot snapshot = factory.captureAll();
        scope.close();
        String there =
                other.submit(snapshot.wrap(Heapwarden::currentAccount)).get(60, TimeUnit.SECONDS);
        assertEquals("tenant", there);
        assertEquals(outside, other.submit(Heapwarden::currentAccount).get(60, TimeUnit.SECONDS));
        other.shutdown();
    }

    @Test
    void scopes_nest_in_snapshots_and_snapshots_in_scopes() {
        Scope first = Heapwarden.enter("first");
        ContextSnapshot snapshot = factory.captureAll();
        first.close();
        Scope second = Heapwarden.enter("second");
        ContextSnapshot other = factory.captureAll();
        ContextSnapshot.Scope set = snapshot.setThreadLocals();
        assertEquals("first", Heapwarden.currentAccount());
        ContextSnapshot.Scope within = other.setThreadLocals();
        assertEquals("second", Heapwarden.currentAccount());
        Scope third = Heapwarden.enter("third");
        assertEquals("third", Heapwarden.currentAccount());
        third.close();
        within.close();
        assertEquals("first", Heapwarden.currentAccount());
        set.close();
        assertEquals("second", Heapwarden.currentAccount());
        second.close();
        assertEquals(outside, Heapwarden.currentAccount());
    }

    @Test
    void what_was_set_and_never_restored_is_left_with_the_rest() {
        ScopeAccessor accessor = new ScopeAccessor();
        Scope scope = Heapwarden.enter("tenant");
        Object tenant = accessor.getValue();
        scope.close();
        for (int time = 0; time < 1_000; time++) {
            accessor.setValue(tenant);
        }
        assertEquals("tenant", Heapwarden.currentAccount());
        accessor.restore();
        assertEquals(outside, Heapwarden.currentAccount());
    }
}
