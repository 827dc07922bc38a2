package com.acme.desk;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * The methods that a policy puts doors at: {@code order} in all its overloads, {@code take}, which is static, and {@code
 * outer} and {@code visit}, which call {@code order}, and {@code stock}, which holds more. {@code read} makes garbage,
 * {@code write} keeps as much, and so does {@code copy}, by {@code write}. Each loader may have one.
 */
public final class Desk implements Function<String, Object> {
    private static final int PIECE = 64 << 10;
    private static final int FAST_MIB = 128;
    private static final List<byte[]> HELD = new ArrayList<>();
    private static final List<byte[][]> NOTES = new ArrayList<>();
    private static volatile Object sink;
    private static final AtomicInteger RAN = new AtomicInteger();
    private static final CountDownLatch VISITED = new CountDownLatch(1);
    private static final CountDownLatch GO_ON = new CountDownLatch(1);

    /** Does one thing, by its name; without a door of its own. Says what the method gave. */
    @Override
    public Object apply(String what) {
        String[] words = what.split(" ");
        switch (words[0]) {
            case "hold":
                return hold(Integer.parseInt(words[1]) * ((1 << 20) / PIECE));
            case "stock":
                return stock(Integer.parseInt(words[1]));
            case "drop":
                HELD.clear();
                NOTES.clear();
                return "dropped";
            case "read":
                return read();
            case "write":
                return write();
            case "copy":
                return copy();
            case "ran":
                return RAN.get();
            case "order":
                return order();
            case "overload":
                return order(7L, "seven");
            case "static":
                return take(2.5);
            case "failing":
                return order((String) null);
            case "outer":
                return outer();
            case "visit":
                return visit();
            case "visited":
                await(VISITED);
                return "visited";
            case "go-on":
                GO_ON.countDown();
                return "gone on";
            case "doors":
                return enter(Integer.parseInt(words[1]));
            case "none":
                return pass(Integer.parseInt(words[1]));
            default:
                throw new IllegalArgumentException(what);
        }
    }

    private static String hold(int pieces) {
        for (int i = 0; i < pieces; i++) {
            HELD.add(new byte[PIECE]);
        }
        return "held";
    }

    /**
     * Holds so many MiB more, 32 a second. Beyond the first of them slowly: a busy machine is not to be out of memory
     * before it has its verdict.
     */
    private static String stock(int mebibytes) {
        RAN.incrementAndGet();
        for (int i = 0; i < mebibytes; i++) {
            hold((1 << 20) / PIECE);
            try {
                Thread.sleep(i < FAST_MIB ? 30 : 500);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
        return "stocked";
    }

    private int order() {
        return RAN.incrementAndGet();
    }

    private long order(long more, String text) {
        return RAN.incrementAndGet() + (more - text.length() - 2);
    }

    private int order(String text) {
        RAN.incrementAndGet();
        return text.length();
    }

    private static double take(double half) {
        return RAN.incrementAndGet() + (half - half);
    }

    private int outer() {
        RAN.incrementAndGet();
        return inner();
    }

    private int inner() {
        try {
            return order();
        } catch (Throwable refused) {
            throw new IllegalStateException("in the middle", refused);
        }
    }

    /** Waits inside, and then calls a method with a door. */
    private int visit() {
        VISITED.countDown();
        await(GO_ON);
        return inner();
    }

    private static int read() {
        sink = note();
        sink = null;
        return RAN.incrementAndGet();
    }

    private static int write() {
        NOTES.add(note());
        return RAN.incrementAndGet();
    }

    private static int copy() {
        return write();
    }

    private static byte[][] note() {
        byte[][] note = new byte[40][];
        for (int i = 0; i < note.length; i++) {
            note[i] = new byte[1000];
        }
        return note;
    }

    private static int enter(int times) {
        int sum = 0;
        for (int i = 0; i < times; i++) {
            sum += withDoor(i);
        }
        return sum;
    }

    private static int pass(int times) {
        int sum = 0;
        for (int i = 0; i < times; i++) {
            sum += withoutDoor(i);
        }
        return sum;
    }

    private static int withDoor(int number) {
        return number ^ 3;
    }

    private static int withoutDoor(int number) {
        return number ^ 3;
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
