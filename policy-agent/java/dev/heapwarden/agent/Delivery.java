package dev.heapwarden.agent;

import java.util.function.Consumer;

/**
 * A thread that tells one listener what waits for it, and ends. It is masked: a listener that is to
 * make room must not be refused for it.
 */
final class Delivery implements Runnable {
    private final Subscriptions subscriptions;
    private final Misuse misuse;
    private final Subscription subscription;

    Delivery(Subscriptions subscriptions, Misuse misuse, Subscription subscription) {
        this.subscriptions = subscriptions;
        this.misuse = misuse;
        this.subscription = subscription;
    }

    @Override
    public void run() {
        boolean done = false;
        try {
            Cells.make().masks++;
            for (Object[] event = subscription.next(); event != null; event = subscription.next()) {
                deliver(event);
            }
            done = true;
        } finally {
            if (!done) {
                subscription.abandon();
            }
        }
    }

    private void deliver(Object[] event) {
        Consumer<Object[]> receiver = subscription.receiver();
        if (receiver == null) {
            return;
        }
        if (subscription.account() == null) {
            subscription.settle(subscriptions.named(subscription.purse()));
        }
        if (subscription.account() == null
                || !subscription.wants((String) event[0], (String) event[1])) {
            return;
        }
        try {
            receiver.accept(event);
        } catch (Throwable thrown) {
            // Whatever it is, the next event may go well.
            misuse.report(Misuse.LISTENER, thrown);
        }
    }
}
