package dev.heapwarden.micrometer;

import dev.heapwarden.internal.Link;
import io.micrometer.context.ThreadLocalAccessor;
import java.util.ArrayDeque;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The scope that a thread is in, as a value that context-propagation captures and sets. Found by it as
 * a service. The values mean nothing to anybody else.
 *
 * <p>Thread-safe. Without the agent there is never a value.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // The annotations of nullness: who uses this need not have them.
public final class ScopeAccessor implements ThreadLocalAccessor<Object> {
    /** The key under which scopes stand in a context: {@value}. */
    public static final String KEY = "dev.heapwarden.scope";

    /** More than can be open on a thread: whoever sets and never restores fills no memory. */
    private static final int MAX_TOKENS = 128;

    /** The scopes entered here on each thread, the latest first. Nothing in it is of our loader. */
    private static final ThreadLocal<ArrayDeque<Long>> ENTERED = new ThreadLocal<>();

    /** Called by the service loader. */
    public ScopeAccessor() {}

    @Override
    public Object key() {
        return KEY;
    }

    @Override
    public @Nullable Object getValue() {
        return Link.capture();
    }

    /** Enters the scope that was captured. */
    @Override
    public void setValue(Object value) {
        enter(value);
    }

    /** Enters no scope: whatever the thread was in, it is out of it until that is restored. */
    @Override
    public void setValue() {
        enter(null);
    }

    /** Leaves what was entered last. */
    @Override
    public void restore(Object previous) {
        leave(previous);
    }

    /** Leaves what was entered last. */
    @Override
    public void restore() {
        leave(null);
    }

    private static void enter(@Nullable Object value) {
        if (!Link.present()) {
            return;
        }
        ArrayDeque<Long> entered = ENTERED.get();
        if (entered == null) {
            entered = new ArrayDeque<>();
            ENTERED.set(entered);
        }
        if (entered.size() < MAX_TOKENS) {
            entered.push(Link.resume(value));
        }
    }

    /** Leaves further ones until the thread is where it was, if those were never restored. */
    private static void leave(@Nullable Object previous) {
        ArrayDeque<Long> entered = ENTERED.get();
        if (entered == null) {
            return;
        }
        boolean left = false;
        while (!entered.isEmpty() && (!left || !Objects.equals(Link.capture(), previous))) {
            Link.close(entered.pop());
            left = true;
        }
        if (entered.isEmpty()) {
            ENTERED.remove();
        }
    }
}
