package dev.heapwarden.agent;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;

/** Opens purses as the agent does, and notes what it is told. */
final class Ledger implements Agent {
    private final AtomicInteger opened = new AtomicInteger();
    private final AtomicIntegerArray misuses = new AtomicIntegerArray(6);
    private final Set<Integer> holding = new HashSet<>();

    /** Purses at the most. */
    volatile int room = Integer.MAX_VALUE;

    /** The answer of {@link #current}. */
    volatile String account = "shop";

    /** The latest argument of {@link #listen}. */
    volatile boolean listening;

    @Override
    public int open(Object token, String name, ClassLoader loader) {
        return opened.get() < room ? opened.incrementAndGet() : 0;
    }

    @Override
    public synchronized boolean idle(int purse) {
        return !holding.contains(purse);
    }

    @Override
    public void use(boolean inherited) {}

    @Override
    public void misuse(int kind) {
        misuses.incrementAndGet(kind);
    }

    @Override
    public String current(int purse) {
        return account;
    }

    @Override
    public void listen(boolean any) {
        listening = any;
    }

    /** Something is charged to the purse. */
    synchronized void charge(int purse) {
        holding.add(purse);
    }

    int opened() {
        return opened.get();
    }
}
