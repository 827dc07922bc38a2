package victim.tenant;

/** Cleans up after an error that it is given, and allocates as it does so. */
public final class Keeper {
    private final Resource resource = new Resource();
    private volatile Object latest;

    private final class Resource implements AutoCloseable {
        @Override
        public void close() {
            latest = new byte[10];
        }
    }

    public void tryFinally(RuntimeException own) {
        try {
            latest = resource;
            throw own;
        } finally {
            latest = new byte[10];
        }
    }

    public void tryWithResource(RuntimeException own) {
        try (Resource open = resource) {
            latest = open;
            throw own;
        }
    }
}
