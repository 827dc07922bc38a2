package victim;

import java.util.concurrent.CountDownLatch;

/**
 * Ends in a chosen way while eight threads allocate as fast as they can.
 *
 * <p>{@code exit} calls System.exit(7), {@code halt} Runtime.halt(8), {@code return} returns from
 * main while the allocating threads are daemons, {@code wait} runs until it is killed.
 */
public final class JvmExit {
    private static final int THREADS = 8;
    private static volatile Object sink;

    private JvmExit() {}

    public static void main(String[] args) throws Exception {
        CountDownLatch running = new CountDownLatch(THREADS);
        for (int t = 0; t < THREADS; t++) {
            Thread thread = new Thread(() -> allocate(running));
            thread.setDaemon(args[0].equals("return"));
            thread.start();
        }
        running.await();
        Protocol.say("ok");
        // Until the test says go.
        System.in.read();
        switch (args[0]) {
            case "exit":
                System.exit(7);
                break;
            case "halt":
                Runtime.getRuntime().halt(8);
                break;
            default:
                break;
        }
    }

    private static void allocate(CountDownLatch running) {
        sink = new byte[1_000];
        running.countDown();
        for (int i = 0; ; i++) {
            sink = new byte[(i & 1_023) + 1];
        }
    }
}
