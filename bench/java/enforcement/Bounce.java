package enforcement;

import enforcement.tenant.Tenant;

/** Lives at its limit: leaks until it is refused, lets go of a fifth, and does it again. */
final class Bounce {
    private Bounce() {}

    /** Arguments: length of an array, limit in bytes, seconds. */
    public static void main(String[] args) throws Exception {
        long limitBytes = Long.parseLong(args[1]);
        Tenant tenant = Bench.tenant(Integer.parseInt(args[0]), limitBytes);
        Bench.pause("ready");
        long endNs = System.nanoTime() + Long.parseLong(args[2]) * 1_000_000_000L;
        while (System.nanoTime() < endNs) {
            tenant.hold(2 * limitBytes);
            tenant.dropTo(limitBytes / 5 * 4);
        }
        Bench.pause("bounced");
        Bench.pause("done");
    }
}
