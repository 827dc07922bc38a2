package victim;

import com.acme.orders.Taker;
import dev.heapwarden.AllocationRefusedError;
import dev.heapwarden.MemoryQuotaExceeded;
import dev.heapwarden.MemoryQuotaExceededError;
import dev.heapwarden.MemoryQuotaExceededException;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;

/**
 * Tests the error that arrives where an allocation is refused. Arguments: the {@code throw} of the account {@code
 * orders}, its limit in bytes, and what to look at: {@code figures} or {@code full}.
 */
public final class ThrownErrors {
    private static final int LENGTH = 1 << 20;
    private static final long DEADLINE_NANOS = 200_000_000_000L;

    private static Class<?> expected;
    private static long limitBytes;

    private ThrownErrors() {}

    public static void main(String[] args) throws Exception {
        expected = type(args[0]);
        limitBytes = Long.parseLong(args[1]);
        if (args[2].equals("full")) {
            onAFullHeap();
        } else {
            check(refused(() -> Taker.array(LENGTH)), 2);
            check(refused(() -> Taker.at(50, LENGTH)), 52);
            check(refused(() -> Taker.at(2_000, LENGTH)), 1024);
            onAVirtualThread();
            atTheEndOfTheStack();
            often();
        }
        System.out.println("delivered");
    }

    private static Class<?> type(String word) {
        switch (word) {
            case "oom":
                return MemoryQuotaExceededError.class;
            case "error":
                return AllocationRefusedError.class;
            default:
                return MemoryQuotaExceededException.class;
        }
    }

    /** Runs the task until it is refused: not every sample hits, and the agent may be just starting. */
    private static Throwable refused(Runnable task) {
        long begun = System.nanoTime();
        while (System.nanoTime() - begun < DEADLINE_NANOS) {
            try {
                task.run();
            } catch (Throwable thrown) {
                return thrown;
            }
        }
        throw new AssertionError("never refused");
    }

    private static void check(Throwable thrown, int least) {
        expect(thrown.getClass() == expected, "not expected: " + thrown);
        MemoryQuotaExceeded refusal = (MemoryQuotaExceeded) thrown;
        expect(refusal.account().equals("orders"), refusal.account());
        expect(refusal.limitBytes() == limitBytes, "limit " + refusal.limitBytes());
        expect(refusal.requestedBytes() == LENGTH + 16, "asked " + refusal.requestedBytes());
        expect(refusal.liveBytes() >= 0, "live " + refusal.liveBytes());
        expect(refusal.standardErrorBytes() >= 0, "error " + refusal.standardErrorBytes());
        expect(thrown.getMessage().startsWith("account \"orders\" is over"), thrown.getMessage());
        StackTraceElement[] stack = thrown.getStackTrace();
        expect(stack.length >= least, stack.length + " frames, of at least " + least);
        expect(
                stack[0].getClassName().equals("com.acme.orders.Taker")
                        && stack[0].getMethodName().equals("array"),
                "the top frame is not the allocating one: " + stack[0]);
    }

    /** Checks the error that the agent throws where it could not make one. */
    private static void checkMadeBeforehand(Throwable thrown) {
        expect(thrown.getClass() == expected, "not expected: " + thrown);
        MemoryQuotaExceeded refusal = (MemoryQuotaExceeded) thrown;
        expect(refusal.account().isEmpty(), "there was room: " + thrown);
        expect(refusal.liveBytes() == 0 && refusal.limitBytes() == 0, thrown.toString());
        // It is everybody's: nothing can be hung on it.
        thrown.addSuppressed(new Exception("suppressed"));
        expect(thrown.getSuppressed().length == 0, "it keeps what was suppressed");
        thrown.fillInStackTrace();
        thrown.setStackTrace(new Exception("stack").getStackTrace());
        expect(thrown.getStackTrace().length == 0, "it keeps a stack trace");
        try {
            thrown.initCause(new Exception("cause"));
            throw new AssertionError("it takes a cause");
        } catch (IllegalStateException e) {
            expect(thrown.getCause() == null, "it keeps a cause");
        }
    }

    private static void onAVirtualThread() throws Exception {
        if (Runtime.version().feature() < 21) {
            return;
        }
        Throwable[] thrown = new Throwable[1];
        Runnable task = () -> thrown[0] = refused(() -> Taker.at(50, LENGTH));
        Thread thread;
        try {
            thread = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
        } catch (InvocationTargetException e) {
            throw new AssertionError(e);
        }
        thread.join();
        check(thrown[0], 52);
    }

    private static void atTheEndOfTheStack() {
        Throwable thrown = refused(() -> Taker.atTheEnd(LENGTH));
        // How much room the compiled frames leave differs: any answer but a crash or another
        // error is right.
        expect(thrown.getClass() == expected, "not expected: " + thrown);
        if (((MemoryQuotaExceeded) thrown).account().isEmpty()) {
            checkMadeBeforehand(thrown);
        }
    }

    /** Enough for a reference that is not given back to be noticed by -Xcheck:jni. */
    private static void often() throws InterruptedException {
        Thread[] threads = new Thread[4];
        int[] missed = new int[threads.length];
        for (int i = 0; i < threads.length; i++) {
            int number = i;
            threads[i] =
                    new Thread(
                            () -> {
                                for (int round = 0; round < 1_000; round++) {
                                    Throwable thrown = refused(() -> Taker.array(LENGTH));
                                    missed[number] += thrown.getClass() == expected ? 0 : 1;
                                }
                            });
            threads[i].start();
        }
        for (int i = 0; i < threads.length; i++) {
            threads[i].join();
            expect(missed[i] == 0, missed[i] + " of another class");
        }
    }

    private static void onAFullHeap() {
        Runtime runtime = Runtime.getRuntime();
        List<byte[]> held = new ArrayList<>(1 << 16);
        refused(Taker::object);
        // Without touching the limit itself: nothing here may be exhausted.
        while (runtime.maxMemory() - runtime.totalMemory() + runtime.freeMemory() > 1 << 20) {
            held.add(new byte[16 << 10]);
        }
        Throwable thrown = refused(Taker::object);
        held.clear();
        checkMadeBeforehand(thrown);
        System.gc();
        Throwable again = refused(Taker::object);
        expect(
                ((MemoryQuotaExceeded) again).account().equals("orders"),
                "with room again: " + again);
    }

    private static void expect(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
