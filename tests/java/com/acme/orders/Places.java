package com.acme.orders;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;

/** Allocates in places of many kinds; every allocation here is one that may be refused. */
public final class Places {
    private static final int LENGTH = 40;
    /** Keeps the compiler from doing without the allocation. */
    private static volatile Object last;

    private Places() {}

    public static void instance() {
        last = new Object();
    }

    public static void array() {
        last = new byte[LENGTH];
    }

    public static void arrays() {
        last = new String[LENGTH];
        last = new long[2][LENGTH];
    }

    public static void copy(byte[] of) {
        last = of.clone();
    }

    public static void text(Object what, int number) {
        last = "the " + what + " number " + number;
    }

    public static void append(StringBuilder to) {
        to.append("something that is longer than sixteen characters");
    }

    public static void add(Collection<Object> to, Object what) {
        to.add(what);
    }

    public static void put(Map<Object, Object> to, Object key) {
        to.put(key, key);
    }

    public static void compute(ConcurrentMap<Object, Object> to, Object key) {
        to.computeIfAbsent(key, missing -> new byte[LENGTH]);
    }

    public static void stream(List<Object> from) {
        last = from.stream().map(each -> new byte[LENGTH]).collect(Collectors.toList());
    }

    /** A lambda that captures: linked at its first use, and made at each. */
    public static void lambda(int number) {
        Runnable captured = () -> last = number;
        last = captured;
    }

    /** Allocates while it handles an earlier error. */
    public static void caught(RuntimeException earlier) {
        try {
            throw earlier;
        } catch (RuntimeException e) {
            array();
        }
    }

    /** Allocates in the copy of a finally block that exceptions take. */
    public static void lastly(RuntimeException earlier) {
        try {
            throw earlier;
        } finally {
            array();
        }
    }

    /** Allocates while a resource is closed because of an earlier error. */
    public static void close(AutoCloseable resource, RuntimeException earlier) throws Exception {
        try (AutoCloseable closed = resource) {
            last = closed;
            throw earlier;
        }
    }
}
