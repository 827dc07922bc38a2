package victim.leaks;

import java.util.ArrayList;
import java.util.List;

/**
 * Services in one JVM, each in a package of its own: some keep what they should, some leak at a known rate.
 * The arguments name them. Garbage of nobody is allocated around them, so that young memory is collected
 * every few seconds. {@code speed=2} lets time pass twice as fast for them: twice the rates, half the
 * lifetimes. {@code collect=3} asks for a collection of all memory each three seconds.
 */
public final class Services {
    private static final int GARBAGE_BYTES = 20_000;
    private static final double GARBAGE_RATE = 20e6;
    private static volatile byte[] sink;

    private Services() {}

    public static void main(String[] args) throws Exception {
        List<Load> loads = new ArrayList<>();
        double speed = 1;
        for (String name : args) {
            int value = name.indexOf('=') + 1;
            if (name.startsWith("speed=")) {
                speed = Double.parseDouble(name.substring(value));
                continue;
            }
            if (name.startsWith("collect=")) {
                collectEach(Long.parseLong(name.substring(value)));
                continue;
            }
            Class<?> store = Class.forName("com.acme.services." + name + ".Store");
            loads.add((Load) store.getDeclaredConstructor().newInstance());
        }
        double pace = speed;
        start("driver", () -> drive(loads, pace));
        victim.Protocol.serve(java.util.Map.of());
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void collectEach(long seconds) {
        start(
                "collector",
                () -> {
                    try {
                        while (true) {
                            Thread.sleep(seconds * 1000);
                            System.gc();
                        }
                    } catch (InterruptedException e) {
                        // Nobody does.
                        return;
                    }
                });
    }

    private static void drive(List<Load> loads, double speed) {
        long begun = System.nanoTime();
        double last = 0;
        Pace garbage = new Pace();
        while (true) {
            double now = (System.nanoTime() - begun) / 1e9;
            double passed = now - last;
            for (Load load : loads) {
                load.tick(now * speed, passed * speed);
            }
            for (int due = garbage.due(GARBAGE_RATE, passed, GARBAGE_BYTES); due > 0; due--) {
                sink = new byte[GARBAGE_BYTES];
            }
            last = now;
            try {
                Thread.sleep(50);
            } catch (InterruptedException e) {
                return;
            }
        }
    }
}
