package dev.heapwarden.agent;

/** Looks a {@link LoaderKey} up without making one. */
final class LoaderProbe {
    private final ClassLoader loader;

    LoaderProbe(ClassLoader loader) {
        this.loader = loader;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(loader);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LoaderKey && ((LoaderKey) other).refersTo(loader);
    }
}
