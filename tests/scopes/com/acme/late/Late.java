package com.acme.late;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/** As {@code com.acme.desk.Desk}, but loaded when it is needed. */
public final class Late implements Function<String, Object> {
    private static final AtomicInteger RAN = new AtomicInteger();

    @Override
    public Object apply(String what) {
        return what.equals("ran") ? RAN.get() : order();
    }

    private static int order() {
        return RAN.incrementAndGet();
    }
}
