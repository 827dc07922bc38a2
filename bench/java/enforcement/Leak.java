package enforcement;

import enforcement.tenant.Tenant;
import java.util.ArrayList;
import java.util.List;

/** Leaks as fast as it can until each of its threads has been refused; then lets go, and is idle. */
final class Leak {
    private Leak() {}

    /** Arguments: threads, length of an array, limit in bytes. */
    public static void main(String[] args) throws Exception {
        Tenant tenant = Bench.tenant(Integer.parseInt(args[1]), Long.parseLong(args[2]));
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            threads.add(new Thread(() -> tenant.hold(Long.MAX_VALUE), "tenant-" + i));
        }
        Bench.pause("ready");
        long begunNs = System.nanoTime();
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Tenant.Refusal first = tenant.refusal();
        // An estimate may be that much too high that a thread is refused below the limit.
        long crossedNs = tenant.crossedNs() == 0 ? first.atNs : tenant.crossedNs();
        System.out.println(
                String.join(
                        " ",
                        "refused",
                        first.error.getClass().getName(),
                        Long.toString(first.heldBytes),
                        Long.toString(tenant.heldBytes()),
                        Long.toString(crossedNs - begunNs),
                        Long.toString(first.atNs - crossedNs)));
        Bench.pause("held");
        tenant.dropTo(0);
        Bench.pause("dropped");
        Bench.pause("done");
    }
}
