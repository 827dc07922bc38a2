package victim.instances;

import java.io.ByteArrayOutputStream;
import java.lang.ref.WeakReference;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Stack;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.Vector;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** Holds objects of the JDK, and some of its own that tell if anybody calls them. */
public final class Shop {
    public static final int STRINGS = 200_000;
    public static final int LISTS = 20_000;
    public static final int MAPS = 5_000;

    /** Whether code of an object of ours was called. */
    public static volatile boolean touched;

    private static List<Object> held = new ArrayList<>();
    private static final List<WeakReference<Object>> WATCHED = new ArrayList<>();

    private Shop() {}

    /** An object with methods that nobody may call. */
    private static final class Touchy {
        long a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;

        @Override
        public int hashCode() {
            touched = true;
            throw new AssertionError("hashCode was called");
        }

        @Override
        public boolean equals(Object other) {
            touched = true;
            throw new AssertionError("equals was called");
        }

        @Override
        public String toString() {
            touched = true;
            throw new AssertionError("toString was called");
        }
    }

    /** A map that lies, and tells if it was asked. */
    private static final class LyingMap extends HashMap<Integer, Integer> {
        private static final long serialVersionUID = 1L;

        @Override
        public int size() {
            touched = true;
            return 1_000_000;
        }

        @Override
        public String toString() {
            touched = true;
            return "lies";
        }
    }

    private static void hold(Object object) {
        held.add(object);
    }

    private static String text(String from) {
        return new String(from.toCharArray());
    }

    /** Two strings in five are one password; lists use a tenth of their room; maps three of 1,024 slots. */
    public static void many() {
        for (int number = 0; number < STRINGS; number++) {
            hold(number % 5 < 2 ? text("password=hunter2") : text("unique value " + number));
        }
        for (int number = 0; number < LISTS; number++) {
            List<Integer> list = new ArrayList<>(100);
            for (int element = 0; element < 10; element++) {
                list.add(element);
            }
            hold(list);
        }
        for (int number = 0; number < MAPS; number++) {
            Map<Integer, Integer> map = new HashMap<>(1024);
            for (int element = 0; element < 3; element++) {
                map.put(element, element);
            }
            hold(map);
        }
        for (int number = 0; number < 2_000; number++) {
            hold(new Touchy());
            hold(new LyingMap());
        }
    }

    private static <C extends Collection<Integer>> void filled(C collection, int count) {
        for (int element = 0; element < count; element++) {
            collection.add(element);
        }
        hold(collection);
        WATCHED.add(new WeakReference<>(collection));
    }

    private static <M extends Map<Integer, Integer>> void filledMap(M map, int count) {
        for (int element = 0; element < count; element++) {
            map.put(element, element);
        }
        hold(map);
        WATCHED.add(new WeakReference<>(map));
    }

    /** One collection of each class, each with another number of elements; values of each kind, some equal. */
    public static void oneOfEach() {
        filled(new ArrayList<>(200), 101);
        filled(new ArrayDeque<>(), 102);
        filledMap(new HashMap<>(), 103);
        filledMap(new LinkedHashMap<>(), 104);
        filled(new HashSet<>(), 105);
        filledMap(new TreeMap<>(), 106);
        filledMap(new ConcurrentHashMap<>(), 107);
        filled(new Vector<>(), 108);
        StringBuilder builder = new StringBuilder(300);
        builder.append("x".repeat(109));
        hold(builder);
        StringBuffer buffer = new StringBuffer();
        buffer.append("\u20ac".repeat(110));
        hold(buffer);
        filled(new TreeSet<>(), 111);
        filled(new LinkedList<>(), 112);
        filled(new PriorityQueue<>(), 113);
        filledMap(new Hashtable<>(), 114);
        filledMap(new WeakHashMap<>(), 115);
        filled(new CopyOnWriteArrayList<>(), 116);
        filled(new LinkedHashSet<>(), 117);
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        stream.write(new byte[118], 0, 118);
        hold(stream);
        filled(new Stack<>(), 119);
        ArrayDeque<Integer> around = new ArrayDeque<>(300);
        for (int element = 0; element < 600; element++) {
            around.add(element);
            if (element >= 250) {
                around.poll();
            }
        }
        hold(around);
        LyingMap lies = new LyingMap();
        lies.put(1, 1);
        hold(lies);
        for (int number = 0; number < 40; number++) {
            hold(new Touchy());
        }
        for (int number = 0; number < 30; number++) {
            hold(Integer.valueOf(-123_456));
        }
        for (int number = 0; number < 29; number++) {
            hold(Long.valueOf(77_777_777_777L));
        }
        for (int number = 0; number < 28; number++) {
            hold(Double.valueOf(1.25));
        }
        for (int number = 0; number < 27; number++) {
            hold(Character.valueOf('\u20ac'));
        }
        for (int number = 0; number < 26; number++) {
            hold(new UUID(0x0123456789abcdefL, 0xfedcba9876543210L));
        }
        for (int number = 0; number < 25; number++) {
            hold(new BigInteger("-1208925819614629174706176"));
        }
        for (int number = 0; number < 24; number++) {
            hold(new BigDecimal("12.50"));
        }
        for (int number = 0; number < 23; number++) {
            hold(new int[] {1, -2, 3});
        }
        for (int number = 0; number < 22; number++) {
            hold(text("\u001b[31mred\u202e" + "y".repeat(200)));
        }
        for (int number = 0; number < 21; number++) {
            hold(Float.valueOf(-0.5f));
        }
        hold(new double[50_000]);
    }

    /** Lets go of everything. */
    public static void drop() {
        held = new ArrayList<>();
    }

    /** How many of the collections are still there. */
    public static int alive() {
        int alive = 0;
        for (WeakReference<Object> one : WATCHED) {
            if (!one.refersTo(null)) {
                alive++;
            }
        }
        return alive;
    }

    /** Allocates so many mebibytes in small arrays, and says how long it took and what the worst thousand took. */
    public static void allocate(int mebibytes) {
        long begun = System.nanoTime();
        long worst = 0;
        for (int turn = 0; turn < mebibytes; turn++) {
            long before = System.nanoTime();
            for (int piece = 0; piece < 1024; piece++) {
                held.set(0, new byte[1000]);
            }
            worst = Math.max(worst, System.nanoTime() - before);
        }
        victim.Protocol.say("micros " + (System.nanoTime() - begun) / 1000 + " " + worst / 1000);
    }
}
