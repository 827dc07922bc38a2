package com.acme.tenant;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Keeps what it gets, from any number of threads, and takes no lock for it. */
public final class Greedy {
    private static final Queue<byte[]> HELD = new ConcurrentLinkedQueue<>();

    private Greedy() {}

    /** Holds one array of {@code length} bytes more; returns the refusal, or null. */
    public static Throwable take(int length) {
        try {
            HELD.add(new byte[length]);
            return null;
        } catch (Throwable refused) {
            return refused;
        }
    }
}
