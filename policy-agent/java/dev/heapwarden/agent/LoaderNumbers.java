package dev.heapwarden.agent;

import java.lang.ref.WeakReference;

/**
 * The numbers by which the agent knows class loaders, remembered without holding the loaders. A look at a
 * loader that was asked for before allocates nothing. Thread-safe.
 */
final class LoaderNumbers {
    /** A power of two. Two loaders with one place push each other out, which costs time alone. */
    private static final int PLACES = 256;

    private static final Known[] PLACES_BY_HASH = new Known[PLACES];

    private LoaderNumbers() {}

    /** Immutable, so that threads may find it without a lock. */
    private static final class Known {
        final WeakReference<ClassLoader> loader;
        final int number;

        Known(ClassLoader loader, int number) {
            this.loader = new WeakReference<>(loader);
            this.number = number;
        }
    }

    /** The loader's number; 0 if the agent knows it for nobody's. */
    static int of(ClassLoader loader) {
        int place = System.identityHashCode(loader) & (PLACES - 1);
        Known known = PLACES_BY_HASH[place];
        if (known != null && known.loader.refersTo(loader)) {
            return known.number;
        }
        int number = Natives.number(loader);
        if (number != 0) {
            PLACES_BY_HASH[place] = new Known(loader, number);
        }
        return number;
    }
}
