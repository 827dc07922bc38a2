package com.acme.counter;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/** A neighbour with a door, which is never over its limit. */
public final class Counter implements Function<String, Object> {
    private static final AtomicInteger RAN = new AtomicInteger();

    @Override
    public Object apply(String what) {
        return what.equals("ran") ? RAN.get() : serve();
    }

    private static int serve() {
        return RAN.incrementAndGet();
    }
}
