package micro;

import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.nio.charset.StandardCharsets;

/**
 * Allocates once under each of many stacks whose methods were never seen before: copies of one
 * class under new names, each called once.
 */
final class Cold {
    /** Large enough to be sampled for certain (but for one in 3,000) at an interval of 8 KiB. */
    private static final int BYTES = 64 << 10;
    private static final int DIGITS = 6;

    private Cold() {}

    /** Arguments: stacks at each depth, then the depths. */
    public static void main(String[] args) throws Exception {
        Thread.currentThread().setContextClassLoader(Bench.service("shop"));
        int stacks = Integer.parseInt(args[0]);
        for (int i = 1; i < args.length; i++) {
            int depth = Integer.parseInt(args[i]);
            Chain[] fresh = copies(depth, stacks);
            // Lets the agent's own threads finish with the new classes.
            Thread.sleep(200);
            Stopwatch.start();
            run(fresh);
            Stopwatch.report("cold", depth);
        }
        Bench.pause("done");
    }

    /** This frame and the one of {@code main} are part of the depth. */
    private static void run(Chain[] fresh) {
        for (Chain chain : fresh) {
            Bench.sink = chain.run(BYTES);
        }
    }

    private static Chain[] copies(int depth, int count) throws Exception {
        Class<?> original = Class.forName(Bench.chainName(depth));
        byte[] code;
        String resource = original.getName().replace('.', '/') + ".class";
        try (InputStream in = ClassLoader.getSystemResourceAsStream(resource)) {
            code = in.readAllBytes();
        }
        String text = new String(code, StandardCharsets.ISO_8859_1);
        String zeros = "_" + "0".repeat(DIGITS);
        MethodHandles.Lookup lookup =
                MethodHandles.privateLookupIn(original, MethodHandles.lookup());
        Chain[] copies = new Chain[count];
        for (int i = 0; i < count; i++) {
            String renamed = text.replace(zeros, String.format("_%0" + DIGITS + "d", i + 1));
            Class<?> copy = lookup.defineClass(renamed.getBytes(StandardCharsets.ISO_8859_1));
            copies[i] = (Chain) copy.getDeclaredConstructor().newInstance();
        }
        return copies;
    }
}
