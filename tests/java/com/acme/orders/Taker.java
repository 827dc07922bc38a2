package com.acme.orders;

/** Allocates in frames of its own. */
public final class Taker {
    /** Keeps the compiler from doing without the allocation. */
    private static volatile Object last;

    private Taker() {}

    public static void array(int length) {
        last = new byte[length];
    }

    public static void object() {
        last = new Object();
    }

    public static void at(int depth, int length) {
        if (depth == 0) {
            array(length);
        } else {
            at(depth - 1, length);
        }
    }

    /** Allocates where the stack has no room for anything else. */
    public static void atTheEnd(int length) {
        try {
            atTheEnd(length);
        } catch (StackOverflowError e) {
            array(length);
        }
    }
}
