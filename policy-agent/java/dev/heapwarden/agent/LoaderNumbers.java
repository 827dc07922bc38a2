package dev.heapwarden.agent;

import java.lang.ref.WeakReference;

/**
 * The numbers by which the agent knows class loaders, and the routes of their services, remembered without
 * holding the loaders. A look at a loader that was asked for before allocates nothing. Thread-safe.
 */
final class LoaderNumbers {
    /** A power of two. */
    private static final int PLACES = 1_024;

    /** Places of a loader. Where all are taken one is pushed out, which costs time alone. */
    private static final int TRIED = 8;

    private static final Known[] PLACES_BY_HASH = new Known[PLACES];

    private LoaderNumbers() {}

    /** Immutable, so that threads may find it without a lock. */
    static final class Known {
        final WeakReference<ClassLoader> loader;
        final int number;

        /** Of the service, made for its first request. A race may make two, and one is forgotten. */
        private volatile ServiceRoutes routes;

        Known(ClassLoader loader, int number) {
            this.loader = new WeakReference<>(loader);
            this.number = number;
        }

        ServiceRoutes routes() {
            ServiceRoutes made = routes;
            if (made == null) {
                made = new ServiceRoutes();
                routes = made;
            }
            return made;
        }
    }

    /** The loader's number; 0 if the agent knows it for nobody's. */
    static int of(ClassLoader loader) {
        Known known = known(loader);
        return known == null ? 0 : known.number;
    }

    /** Returns the known facts of the loader; null if the agent knows it for nobody's. */
    static Known known(ClassLoader loader) {
        int hash = System.identityHashCode(loader);
        for (int at = hash; at < hash + TRIED; at++) {
            Known known = PLACES_BY_HASH[at & PLACES - 1];
            if (known != null && known.loader.refersTo(loader)) {
                return known;
            }
        }
        int number = Natives.number(loader);
        return number == 0 ? null : put(hash, new Known(loader, number));
    }

    private static Known put(int hash, Known known) {
        int place = hash;
        for (int at = hash; at < hash + TRIED; at++) {
            Known there = PLACES_BY_HASH[at & PLACES - 1];
            if (there == null || there.loader.refersTo(null)) {
                place = at;
                break;
            }
        }
        PLACES_BY_HASH[place & PLACES - 1] = known;
        return known;
    }
}
