package com.acme.place.store;

import java.util.ArrayList;
import java.util.List;

/** The list of arrays that requests and jobs of the program share. */
public final class Entries {
    private static final List<byte[]> HELD = new ArrayList<>();
    private static volatile byte[] last;

    private Entries() {}

    /** Allocates one object. */
    public static void make() {
        last = new byte[10_000];
    }

    /** Holds so many bytes, for good. */
    public static void hold(int bytes) {
        HELD.add(new byte[bytes]);
    }
}
