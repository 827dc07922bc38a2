package com.acme.sites;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** Allocates on lines that the test knows by their comments. */
public final class Shelf {
    /** How many synchronized maps lie around the one that is filled. */
    private static final int WRAPPERS = 60;

    private static final List<Object> KEPT = new ArrayList<>();

    private static volatile Object sink;

    private Shelf() {}

    private static synchronized void keep(Object object) {
        KEPT.add(object);
    }

    public static void often() {
        keep(new Item()); // site: often
    }

    public static void seldom() {
        keep(new Item()); // site: seldom
    }

    /** Makes garbage, and keeps nothing. */
    public static void garbage(int length) {
        sink = new byte[length]; // site: garbage
        sink = null;
    }

    /** Keeps an array of the garbage's class. */
    public static void array(int length) {
        keep(new byte[length]); // site: array
    }

    /** Keeps nodes of a map, with more of the JDK's frames above than a stack keeps. */
    public static void deep(int count) {
        Map<Integer, Integer> map = new HashMap<>();
        keep(map);
        for (int wrapper = 0; wrapper < WRAPPERS; wrapper++) {
            map = Collections.synchronizedMap(map);
        }
        for (int number = 0; number < count; number++) {
            map.put(number, null); // site: deep
        }
    }

    /** Keeps items that a lambda makes, called by a stream. */
    public static void lambda(int count) {
        Supplier<Item> maker = () -> new Item(); // site: lambda
        IntStream.range(0, count).mapToObj(number -> maker.get()).forEach(Shelf::keep);
    }
}
