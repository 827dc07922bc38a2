package enforcement;

import enforcement.tenant.Tenant;

/** Holds most of its limit and makes garbage at full speed: a service that is to go unharmed. */
final class Churn {
    private static final int AT_ONCE = 1_000;

    private Churn() {}

    /** Arguments: length of an array, limit in bytes, percent of it to hold, milliseconds. */
    public static void main(String[] args) throws Exception {
        long limitBytes = Long.parseLong(args[1]);
        Tenant tenant = Bench.tenant(Integer.parseInt(args[0]), limitBytes);
        tenant.hold(limitBytes / 100 * Long.parseLong(args[2]));
        Bench.pause("ready");
        long begunNs = System.nanoTime();
        long endNs = begunNs + Long.parseLong(args[3]) * 1_000_000L;
        long arrays = 0;
        while (System.nanoTime() < endNs && tenant.churn(AT_ONCE)) {
            arrays += AT_ONCE;
        }
        double seconds = (System.nanoTime() - begunNs) / 1e9;
        System.out.println("churned " + (long) (arrays / seconds));
        Bench.pause("churned");
        Bench.pause("done");
    }
}
