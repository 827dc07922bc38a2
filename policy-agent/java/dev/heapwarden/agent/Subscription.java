package dev.heapwarden.agent;

import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.function.Consumer;

/**
 * A listener, weakly, and what it has not heard yet. The API's copy that registered it holds the
 * listener for as long as the code that it belongs to. Thread-safe.
 */
public final class Subscription {
    /** Events that wait for one listener at the most; then the oldest is dropped. */
    static final int MAX_WAITING = 64;

    private final WeakReference<Consumer<Object[]>> receiver;

    /** The context loader under which it was registered: its code runs under that. */
    private final WeakReference<ClassLoader> loader;

    /** The scope in which it was registered; keeps its purse. Null for none. */
    private final Context context;

    /** The account listened to; null while its service has no name yet. */
    private volatile String account;

    /** To be guarded by this. */
    private final ArrayDeque<Object[]> waiting = new ArrayDeque<>();
    private boolean running;

    private volatile boolean ended;

    /**
     * A listener to one account.
     *
     * @param account its published name; null for the account of this loader and context, once it has
     *     a name
     */
    Subscription(
            Consumer<Object[]> receiver, ClassLoader loader, Context context, String account) {
        this.receiver = new WeakReference<>(receiver);
        this.loader = new WeakReference<>(loader);
        this.context = account == null ? context : null;
        this.account = account;
    }

    /** Hears no more, also not what waits. */
    void end() {
        ended = true;
        synchronized (this) {
            waiting.clear();
        }
    }

    /** Whether it can be forgotten. */
    boolean over() {
        return ended || receiver.refersTo(null);
    }

    /** The listener; null if it is gone. */
    Consumer<Object[]> receiver() {
        return ended ? null : receiver.get();
    }

    /** The loader to run it under; null for none. */
    ClassLoader loader() {
        return loader.get();
    }

    /** The scope it was registered in, while the account has no name yet. */
    int purse() {
        return context == null ? 0 : context.purse;
    }

    /** The account listened to; null if that is not known yet. */
    String account() {
        return account;
    }

    /** Its account has a name. */
    void settle(String name) {
        account = name;
    }

    /** Whether an event of an account, or of one beneath it, may be for this listener. */
    boolean wants(String of, String parent) {
        String mine = account;
        return mine == null || mine.equals(of) || mine.equals(parent);
    }

    /**
     * Puts an event into the queue.
     *
     * @return whether a thread has to be started to deliver it, which then calls {@link #next} until
     *     that is null
     */
    synchronized boolean offer(Object[] event) {
        if (ended) {
            return false;
        }
        if (waiting.size() == MAX_WAITING) {
            waiting.poll();
        }
        waiting.add(event);
        boolean start = !running;
        running = true;
        return start;
    }

    /** The next event; null if the queue is empty, and the thread that asks is to end. */
    synchronized Object[] next() {
        Object[] event = waiting.poll();
        running = event != null;
        return event;
    }

    /** The thread could not be started, or ended early: the next event starts another. */
    synchronized void abandon() {
        running = false;
    }
}
