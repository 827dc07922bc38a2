package victim.ways.virtual;

import victim.ways.Way;

/** Arrays of 1,000 bytes, with rests between, so that a virtual thread changes its carrier. */
public final class Virtual implements Way {
    @Override
    public Object run(int rounds) throws InterruptedException {
        Object last = null;
        for (int i = 0; i < rounds; i++) {
            last = new byte[1000];
            if (i % 100 == 0) {
                rest();
            }
        }
        return last;
    }

    private static void rest() throws InterruptedException {
        // Of no account's code but this; the JDK's timers run on threads of nobody.
        Thread.yield();
    }
}
