package victim.leaks;

import java.util.ArrayList;
import java.util.List;

/**
 * Services in one JVM, each in a package of its own: some keep what they should, some leak at a known rate.
 * The arguments name them. Garbage of nobody is allocated around them, so that young memory is collected
 * every few seconds.
 */
public final class Services {
    private static final int GARBAGE_BYTES = 20_000;
    private static final double GARBAGE_RATE = 20e6;
    private static volatile byte[] sink;

    private Services() {}

    public static void main(String[] args) throws Exception {
        List<Load> loads = new ArrayList<>();
        for (String name : args) {
            Class<?> store = Class.forName("com.acme.services." + name + ".Store");
            loads.add((Load) store.getDeclaredConstructor().newInstance());
        }
        Thread driver = new Thread(() -> drive(loads), "driver");
        driver.setDaemon(true);
        driver.start();
        victim.Protocol.serve(java.util.Map.of());
    }

    private static void drive(List<Load> loads) {
        long begun = System.nanoTime();
        double last = 0;
        Pace garbage = new Pace();
        while (true) {
            double now = (System.nanoTime() - begun) / 1e9;
            for (Load load : loads) {
                load.tick(now, now - last);
            }
            for (int due = garbage.due(GARBAGE_RATE, now - last, GARBAGE_BYTES); due > 0; due--) {
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
