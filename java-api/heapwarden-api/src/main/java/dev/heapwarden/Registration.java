package dev.heapwarden;

import dev.heapwarden.internal.Link;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A listener's registration. It need not be kept: a listener that is never closed is registered for
 * as long as its class is loaded, so an application that is undeployed takes its listeners along.
 * Thread-safe.
 *
 * @since 0.1
 */
public final class Registration implements AutoCloseable {
    private final Consumer<Object[]> receiver;
    private final Object subscription;
    private final boolean inert;

    /** A null subscription makes a registration that does nothing. */
    Registration(Consumer<Object[]> receiver, @Nullable Object subscription) {
        this.receiver = receiver;
        this.inert = subscription == null;
        this.subscription = subscription == null ? receiver : subscription;
    }

    /** Ends it: the listener is called for no further event. Idempotent. */
    @Override
    public void close() {
        if (!inert) {
            Link.silence(subscription);
            Receiver.release(receiver);
        }
    }
}
