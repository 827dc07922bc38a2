package dev.heapwarden.agent;

import java.util.ArrayList;
import java.util.function.Consumer;

/** Everybody who listens. Thread-safe; {@link #announce} never waits for a listener. */
final class Subscriptions {
    /** Listeners in one JVM at the most. */
    static final int MAX = 1_000;

    private static final Subscription[] NOBODY = {};

    private final Agent agent;
    private final Misuse misuse;

    /** Replaced as a whole, under this object's lock; read without it. */
    private volatile Subscription[] all = NOBODY;

    Subscriptions(Agent agent, Misuse misuse) {
        this.agent = agent;
        this.misuse = misuse;
    }

    /**
     * Registers a listener. Null where there are too many.
     *
     * @param account the account's published name; null for the one that pays for the calling thread
     */
    Subscription add(
            Consumer<Object[]> receiver, ClassLoader loader, Context context, String account) {
        String name = account == null ? named(context == null ? 0 : context.purse) : account;
        Subscription made = new Subscription(receiver, loader, context, name);
        if (replace(made)) {
            return made;
        }
        misuse.report(Misuse.LISTENERS);
        return null;
    }

    /** Ends a subscription. Idempotent. */
    void remove(Subscription subscription) {
        subscription.end();
        replace(null);
    }

    /** How many there are, with those that are over and not forgotten yet. */
    int size() {
        return all.length;
    }

    /** Tells the listeners that it concerns, on threads of their own. */
    void announce(Object[] event, String account, String parent) {
        boolean over = false;
        for (Subscription each : all) {
            if (each.over()) {
                over = true;
            } else if (each.wants(account, parent) && each.offer(event)) {
                start(each);
            }
        }
        if (over) {
            replace(null);
        }
    }

    /** The calling thread's account, if it has a name of its own by now; else null. */
    String named(int purse) {
        String name = agent.current(purse);
        // Reserved names: of no account, or of a service that the agent has not named yet.
        return name == null || name.startsWith("_") ? null : name;
    }

    private void start(Subscription subscription) {
        Delivery delivery = new Delivery(this, misuse, subscription);
        try {
            // No inheritance of thread-locals: what the starter has in them is none of its business.
            Thread thread = new Thread(null, delivery, "heapwarden-listener", 0, false);
            thread.setDaemon(true);
            thread.setContextClassLoader(subscription.loader());
            thread.start();
        } catch (OutOfMemoryError noThread) {
            subscription.abandon();
        }
    }

    /** Adds one, if there is room, and forgets those that are over. */
    private synchronized boolean replace(Subscription added) {
        ArrayList<Subscription> left = new ArrayList<>(all.length + 1);
        for (Subscription each : all) {
            if (!each.over()) {
                left.add(each);
            }
        }
        boolean room = left.size() < MAX;
        if (added != null && room) {
            left.add(added);
        }
        boolean any = !left.isEmpty();
        if (any != (all.length > 0)) {
            agent.listen(any);
        }
        all = left.toArray(NOBODY);
        return room;
    }
}
