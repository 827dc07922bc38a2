package micro;

/** Holds many small objects, each of which is tracked when the interval is "exact". */
final class Hold {
    private Hold() {}

    /** Argument: how many objects. */
    public static void main(String[] args) throws Exception {
        Thread.currentThread().setContextClassLoader(Bench.service("shop"));
        Object[] held = new Object[Integer.parseInt(args[0])];
        // Code and the agent's tables are warm before the first look.
        fill(new Object[20_000]);
        System.gc();
        Thread.sleep(500);
        Bench.pause("empty");
        fill(held);
        Bench.pause("full");
        if (held[held.length - 1] == null) {
            throw new AssertionError("nothing is held");
        }
        Bench.pause("done");
    }

    private static void fill(Object[] places) {
        for (int i = 0; i < places.length; i++) {
            places[i] = new Object();
        }
    }
}
