package com.acme.orders;

/** Allocates while its class is initialised. */
public final class Initialised {
    private static final byte[][] TABLE = new byte[64][];

    static {
        for (int i = 0; i < TABLE.length; i++) {
            TABLE[i] = new byte[i];
        }
    }

    private Initialised() {}
}
