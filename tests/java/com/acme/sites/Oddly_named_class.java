package com.acme.sites;

import java.util.function.Supplier;

/** Makes its own instances. The test gives the class a name in its place that no Java source can have. */
public final class Oddly_named_class implements Supplier<Object> {
    private final long[] weight = new long[20];

    @Override
    public Object get() {
        Oddly_named_class made = new Oddly_named_class(); // site: odd
        made.weight[0] = 1;
        return made;
    }
}
