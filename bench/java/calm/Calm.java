package calm;

import calm.tenant.Tenant;
import java.io.IOException;

/** Counts the operations of a service that holds a share of its limit and makes garbage at full speed. */
public final class Calm {
    private static final int THREADS = 2;

    private Calm() {}

    /** Arguments: bytes to hold, seconds to settle, seconds to count, how often to count. */
    public static void main(String[] args) throws Exception {
        Tenant tenant = new Tenant(Long.parseLong(args[0]));
        // The held objects go to old memory.
        System.gc();
        System.gc();
        System.out.println("held " + tenant.heldBytes());
        pause("ready");
        tenant.start(THREADS);
        Thread.sleep(1_000L * Integer.parseInt(args[1]));
        pause("settled");
        for (int left = Integer.parseInt(args[3]); left > 0; left--) {
            System.out.println(counted(tenant, Integer.parseInt(args[2])));
            pause("measured");
        }
        tenant.stop();
    }

    /** Prints a line and waits until the bench has looked at the JVM from outside. */
    private static void pause(String line) throws IOException {
        System.out.println(line);
        System.in.read();
    }

    /** Operations a second, those of the slowest second, and errors. */
    private static String counted(Tenant tenant, int seconds) throws InterruptedException {
        long errors = tenant.errors();
        long begunNs = System.nanoTime();
        long begun = tenant.operations();
        long lastNs = begunNs;
        long last = begun;
        double slowest = Double.MAX_VALUE;
        for (int second = 1; second <= seconds; second++) {
            long leftNs = begunNs + second * 1_000_000_000L - System.nanoTime();
            Thread.sleep(Math.max(0, leftNs) / 1_000_000);
            long nowNs = System.nanoTime();
            long now = tenant.operations();
            slowest = Math.min(slowest, perSecond(now - last, nowNs - lastNs));
            lastNs = nowNs;
            last = now;
        }
        double mean = perSecond(last - begun, lastNs - begunNs);
        return "counted " + mean + " " + slowest + " " + (tenant.errors() - errors);
    }

    private static double perSecond(long operations, long ns) {
        return operations * 1e9 / ns;
    }
}
