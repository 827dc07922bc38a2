package walks;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;

/**
 * A heap of small objects that stays as it is, and a thread that notices how long it was kept from running.
 *
 * <p>Says {@code ready} and waits for a line; then watches, says {@code watching}, waits for a line, says the
 * longest gap in nanoseconds, and is ready again.
 */
public final class Watched {
    /** Objects that services have made, and that this program holds. */
    private static final List<Object> GIVEN = new ArrayList<>();

    private Watched() {}

    public static void main(String[] arguments) throws Exception {
        long bytes = Long.parseLong(arguments[0]) << 20;
        if (arguments.length == 1) {
            new Held().apply(bytes);
        } else {
            services(bytes, Integer.parseInt(arguments[1]));
        }
        Watcher watcher = new Watcher();
        watcher.setDaemon(true);
        watcher.start();
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.gc();
        while (true) {
            System.out.println("ready");
            if (orders.readLine() == null) {
                return;
            }
            watcher.longestNanos = 0;
            System.out.println("watching");
            if (orders.readLine() == null) {
                return;
            }
            System.out.println(watcher.longestNanos);
        }
    }

    /** The same heap, divided among so many services, each with a class loader of its own. */
    @SuppressWarnings("unchecked")
    private static void services(long bytes, int count) throws Exception {
        URL own = Watched.class.getProtectionDomain().getCodeSource().getLocation();
        ClassLoader platform = ClassLoader.getPlatformClassLoader();
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        for (int number = 0; number < count; number++) {
            ClassLoader loader = new URLClassLoader("s" + number, new URL[] {own}, platform);
            Object made = loader.loadClass("walks.Held").getConstructor().newInstance();
            thread.setContextClassLoader(loader);
            GIVEN.add(((LongFunction<Object>) made).apply(bytes / count));
            thread.setContextClassLoader(before);
        }
    }

    private static final class Watcher extends Thread {
        volatile long longestNanos;

        @Override
        public void run() {
            long last = System.nanoTime();
            while (true) {
                try {
                    Thread.sleep(1);
                } catch (InterruptedException end) {
                    return;
                }
                long now = System.nanoTime();
                longestNanos = Math.max(longestNanos, now - last);
                last = now;
            }
        }
    }
}
