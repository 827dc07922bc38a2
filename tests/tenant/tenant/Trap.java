package tenant;

import java.util.concurrent.locks.LockSupport;

/** An impostor's trap for a thread that runs its code: it says so, and keeps the thread. */
public final class Trap {
    private Trap() {}

    /** Never returns. */
    public static Object spring() {
        System.out.println("ran on " + Thread.currentThread().getName());
        while (true) {
            LockSupport.park();
        }
    }
}
