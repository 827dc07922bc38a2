package victim;

import com.acme.tenant.Newcomer;
import com.acme.tenant.Tenant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Drives one tenant of known holdings against its limit.
 *
 * <pre>
 * leak THREADS LENGTH MOST GARBAGE   holds arrays until refused or MOST bytes are held by each
 *                                    thread; says "refused CLASS held BYTES" or "held BYTES"
 * churn THREADS LENGTH SECONDS       makes garbage; says "churned BYTES" or "refused CLASS …"
 * drip LENGTH MOST BYTES             the same in one thread, at so many bytes a second
 * bounce SECONDS LENGTH              leaks until refused, lets go, and again; says "bounced TIMES"
 * allocate LENGTH                    one array; says "allowed" or "refused CLASS"
 * newcomer LENGTH                    the same, in code and of a class never met before
 * drop, dropTo BYTES                 lets go
 * held                               says "held BYTES"
 * </pre>
 */
public final class LimitedTenant {
    private static Tenant tenant;

    private LimitedTenant() {}

    public static void main(String[] args) throws Exception {
        tenant = new Tenant(Layout.array(1, 1_000) / 8 * 8 - 1_000);
        Protocol.serve(
                Map.of(
                        "leak", LimitedTenant::leak,
                        "drip", LimitedTenant::drip,
                        "churn", LimitedTenant::churn,
                        "bounce", LimitedTenant::bounce,
                        "allocate", LimitedTenant::allocate,
                        "newcomer", LimitedTenant::newcomer,
                        "drop", words -> tenant.drop(),
                        "dropTo", words -> tenant.dropTo(Long.parseLong(words[1])),
                        "held", words -> Protocol.say("held " + tenant.heldBytes())));
    }

    private static void leak(String[] words) throws InterruptedException {
        int length = Integer.parseInt(words[2]);
        long most = Long.parseLong(words[3]);
        int garbage = Integer.parseInt(words[4]);
        AtomicReference<String> held = new AtomicReference<>();
        Throwable refused =
                inThreads(
                        Integer.parseInt(words[1]),
                        () -> {
                            Throwable error = tenant.hold(length, most, garbage);
                            if (error != null) {
                                held.compareAndSet(null, "" + tenant.heldBytes());
                            }
                            return error;
                        });
        if (refused == null) {
            Protocol.say("held " + tenant.heldBytes());
        } else {
            Protocol.say("refused " + refused.getClass().getName() + " held " + held.get());
            Protocol.say("message " + refused.getMessage());
        }
    }

    private static void drip(String[] words) throws InterruptedException {
        int length = Integer.parseInt(words[1]);
        long most = Long.parseLong(words[2]);
        long pace = Long.parseLong(words[3]);
        long begun = System.nanoTime();
        Throwable refused = null;
        for (long held = pace / 100; refused == null && held < most; held += pace / 100) {
            refused = tenant.hold(length, pace / 100, 0);
            long due = begun + (long) ((double) held / pace * 1e9);
            long millis = (due - System.nanoTime()) / 1_000_000;
            if (millis > 0) {
                Thread.sleep(millis);
            }
        }
        String name = refused == null ? "nothing" : refused.getClass().getName();
        Protocol.say("refused " + name + " held " + tenant.heldBytes());
    }

    private static void churn(String[] words) throws InterruptedException {
        int length = Integer.parseInt(words[2]);
        long end = System.nanoTime() + Long.parseLong(words[3]) * 1_000_000_000L;
        Throwable refused =
                inThreads(
                        Integer.parseInt(words[1]),
                        () -> tenant.churn(length, () -> System.nanoTime() < end));
        if (refused == null) {
            Protocol.say("churned " + tenant.churnedBytes());
        } else {
            Protocol.say("refused " + refused.getClass().getName());
            Protocol.say("message " + refused.getMessage());
        }
    }

    private static void bounce(String[] words) {
        long end = System.nanoTime() + Long.parseLong(words[1]) * 1_000_000_000L;
        int length = Integer.parseInt(words[2]);
        int times = 0;
        while (System.nanoTime() < end) {
            if (tenant.hold(length, 1L << 20, 0) != null) {
                times++;
                tenant.drop();
            }
        }
        tenant.drop();
        Protocol.say("bounced " + times);
    }

    private static void allocate(String[] words) {
        Throwable refused = tenant.hold(Integer.parseInt(words[1]), 1, 0);
        Protocol.say(refused == null ? "allowed" : "refused " + refused.getClass().getName());
    }

    private static void newcomer(String[] words) {
        Throwable refused = Newcomer.take(Integer.parseInt(words[1]));
        Protocol.say(refused == null ? "allowed" : "refused " + refused.getClass().getName());
    }

    private interface Work {
        Throwable run();
    }

    /** The first refusal that any of the threads met, or null. */
    private static Throwable inThreads(int count, Work work) throws InterruptedException {
        AtomicReference<Throwable> first = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(() -> first.compareAndSet(null, work.run()), "tenant-" + i);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return first.get();
    }
}
