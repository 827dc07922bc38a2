package com.acme.shop;

/** An application's code: an error may be thrown in it, not in that of the interceptor's package. */
public final class Shelf {
    private static volatile Object dropped;

    private Shelf() {}

    /** Makes what is dropped at once. */
    public static void make(int kib) {
        for (int made = 0; made < kib; made++) {
            dropped = new byte[1_024];
        }
    }
}
