package dev.heapwarden.agent;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.function.BooleanSupplier;

/** Waits for what a collection brings about. */
final class Collected {
    private static final long BOUND_NANOS = 60_000_000_000L;

    private Collected() {}

    static void await(BooleanSupplier condition) throws InterruptedException {
        long begun = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - begun > BOUND_NANOS) {
                fail("not within a minute of collections");
            }
            System.gc();
            Thread.sleep(10);
        }
    }
}
