package dev.heapwarden.agent;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;

/** The names of every service that scopes were entered in. Holds no loader. Thread-safe. */
final class Services {
    private final Agent agent;
    private final ConcurrentHashMap<LoaderKey, Names> names = new ConcurrentHashMap<>();
    private final ReferenceQueue<ClassLoader> gone = new ReferenceQueue<>();
    private final Names none;

    Services(Agent agent) {
        this.agent = agent;
        this.none = new Names(agent, new WeakReference<>(null), Names.MAX);
    }

    /**
     * The names of the service that a call is made in: the one of the context loader, unless that is
     * the JVM's own; then the one of the API's copy, unless its loader is the JVM's own; then those of
     * no service.
     *
     * @param context the context loader, not null
     */
    Names of(ClassLoader context, Home home) {
        tidy();
        ClassLoader loader = Loaders.plain(context) ? home.loader.get() : context;
        if (loader == null) {
            return none;
        }
        Names known = names.get(new LoaderProbe(loader));
        if (known != null) {
            return known;
        }
        LoaderKey key = new LoaderKey(loader, gone);
        Names made = new Names(agent, key, Names.MAX);
        Names first = names.putIfAbsent(key, made);
        return first == null ? made : first;
    }

    /** Forgets services whose loaders are gone; their purses end. */
    void tidy() {
        for (Reference<?> key = gone.poll(); key != null; key = gone.poll()) {
            names.remove(key);
        }
    }

    /** How many services there are, the one of no loader not counted. */
    int size() {
        return names.size();
    }
}
