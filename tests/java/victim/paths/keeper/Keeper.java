package victim.paths.keeper;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import victim.paths.maker.Maker;
import victim.paths.other.Other;

/** Keeps what another account makes: alone, together with a third, and on a stack only. */
public final class Keeper {
    static final List<byte[]> ALONE = new ArrayList<>();
    static final List<byte[]> SHARED = new ArrayList<>();

    private Keeper() {}

    public static void hold() throws InterruptedException {
        for (byte[] one : Maker.make(6000)) {
            ALONE.add(one);
        }
        for (byte[] one : Maker.make(3000)) {
            SHARED.add(one);
            Other.SHARED.add(one);
        }
        CountDownLatch made = new CountDownLatch(1);
        Thread thread = new Thread(() -> onStack(made), "holds on its stack");
        thread.setDaemon(true);
        thread.start();
        made.await();
    }

    private static void onStack(CountDownLatch made) {
        byte[][] own = Maker.make(4000);
        made.countDown();
        while (own.length > 0) {
            try {
                Thread.sleep(1000);
            } catch (InterruptedException end) {
                return;
            }
        }
    }
}
