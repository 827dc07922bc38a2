package com.acme.tenant;

/** Code of the tenant that nobody has run, and a class of object that nobody has made. */
public final class Newcomer {
    private static volatile short[][] held;

    private Newcomer() {}

    /** Holds one array of {@code length} shorts; returns the refusal, or null. */
    public static Throwable take(int length) {
        try {
            held = new short[][] {new short[length]};
            return null;
        } catch (Throwable refused) {
            return refused;
        }
    }
}
