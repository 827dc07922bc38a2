package victim;

import com.acme.tenant.Cleaner;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;

/**
 * Threads that end with errors. Each command waits for its thread and says what the default handler got:
 * "ended CLASS", or "went on".
 *
 * <pre>
 * platform NAME MOST   a thread that holds MOST bytes and catches nothing
 * virtual MOST         the same on a virtual thread without a name; says "none" before JDK 21
 * catching MOST        the same on a thread that catches
 * other                a thread that throws an exception of its own
 * </pre>
 */
public final class EndingThreads {
    private static volatile String last;

    private EndingThreads() {}

    public static void main(String[] args) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler(
                (thread, error) -> last = "ended " + error.getClass().getName());
        Protocol.serve(
                Map.of(
                        "platform", words -> platform(words[1], cleaner(words[2])),
                        "virtual", words -> virtual(cleaner(words[1])),
                        "catching", words -> platform("catching", catching(cleaner(words[1]))),
                        "other", words -> platform("other", EndingThreads::fail)));
    }

    private static Runnable cleaner(String most) {
        return new Cleaner(Long.parseLong(most));
    }

    private static Runnable catching(Runnable work) {
        return () -> {
            try {
                work.run();
            } catch (OutOfMemoryError refused) {
                System.out.println("caught " + refused.getClass().getName());
            }
        };
    }

    private static void fail() {
        throw new IllegalStateException("of the program's own");
    }

    private static void platform(String name, Runnable work) throws InterruptedException {
        last = "went on";
        Thread thread = new Thread(work, name);
        thread.start();
        thread.join();
        Protocol.say(last);
    }

    private static void virtual(Runnable work) throws Exception {
        last = "went on";
        try {
            Object thread =
                    Thread.class
                            .getMethod("startVirtualThread", Runnable.class)
                            .invoke(null, work);
            ((Thread) thread).join();
            Protocol.say(last);
        } catch (NoSuchMethodException | InvocationTargetException none) {
            // A method of a preview throws.
            Protocol.say("none");
        }
    }
}
