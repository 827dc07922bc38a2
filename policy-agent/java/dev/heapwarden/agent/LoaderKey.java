package dev.heapwarden.agent;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;

/** A loader as a key that does not hold it, compared by identity. */
final class LoaderKey extends WeakReference<ClassLoader> {
    private final int hash;

    LoaderKey(ClassLoader loader, ReferenceQueue<ClassLoader> queue) {
        super(loader, queue);
        this.hash = System.identityHashCode(loader);
    }

    @Override
    public int hashCode() {
        return hash;
    }

    /** Of two live keys the loader decides; a key whose loader is gone is equal to itself alone. */
    @Override
    public boolean equals(Object other) {
        if (this == other) {
            return true;
        }
        if (!(other instanceof LoaderKey)) {
            return false;
        }
        ClassLoader loader = get();
        return loader != null && ((LoaderKey) other).refersTo(loader);
    }
}
