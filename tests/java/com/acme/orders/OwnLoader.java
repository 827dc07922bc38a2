package com.acme.orders;

/** A class loader of the account's own, which allocates while it looks for a class. */
public final class OwnLoader extends ClassLoader {
    private final ClassNotFoundException notFound;

    public OwnLoader(ClassNotFoundException notFound) {
        super(null);
        this.notFound = notFound;
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        Places.array();
        throw notFound;
    }
}
