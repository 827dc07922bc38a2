package victim;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Holds exactly what it is told to, allocated under chosen packages' frames.
 *
 * <pre>
 * hold  PATH KIND*COUNT …            on the main thread
 * threads  N PATH KIND*COUNT …       the batch once in each of N platform threads
 * virtual  N PATH KIND*COUNT …       the same in virtual threads
 * churn PATH KIND*COUNT …            allocates and drops at once
 * drop                               lets go of everything
 * flag NAME [VALUE]                  tells a flag of the VM, or sets it
 * </pre>
 *
 * PATH is packages from the caller to the callee, {@code com.acme.orders>org.lib.xml}, where
 * {@code +50} stands for fifty frames of nobody; or {@code -} for no frame of any account.
 */
public final class Holder {
    private static final Map<String, PackageFrame> FRAMES = new HashMap<>();
    private static final List<Object> HELD = new ArrayList<>();

    private Holder() {}

    public static void main(String[] args) throws Exception {
        Layout.crossCheck();
        for (String name : args) {
            FRAMES.put(name, frame(name));
        }
        Protocol.serve(
                Map.of(
                        "hold", words -> hold(words[1], new Batch(words, 2), true),
                        "churn", words -> hold(words[1], new Batch(words, 2), false),
                        "threads", words -> inThreads(words, Holder::platform),
                        "virtual", words -> inThreads(words, Holder::virtual),
                        "drop", words -> HELD.clear(),
                        "flag", Flag::run));
    }

    private static PackageFrame frame(String packageName) throws ReflectiveOperationException {
        Class<?> desk = Class.forName(packageName + ".Desk");
        PackageFrame frame = (PackageFrame) desk.getDeclaredConstructor().newInstance();
        // Links the call before it is used in earnest.
        frame.run(() -> {});
        return frame;
    }

    private static Runnable along(String path, Runnable task) {
        if (path.equals("-")) {
            return task;
        }
        String[] names = path.split(">");
        Runnable chain = task;
        for (int k = names.length - 1; k >= 0; k--) {
            Runnable inner = chain;
            if (names[k].startsWith("+")) {
                int frames = Integer.parseInt(names[k].substring(1));
                chain = () -> deeper(frames, inner);
                continue;
            }
            PackageFrame frame = FRAMES.get(names[k]);
            if (frame == null) {
                throw new IllegalArgumentException("not named at the start: " + names[k]);
            }
            chain = () -> frame.run(inner);
        }
        return chain;
    }

    private static void deeper(int frames, Runnable task) {
        if (frames == 0) {
            task.run();
        } else {
            deeper(frames - 1, task);
        }
    }

    private static void hold(String path, Batch batch, boolean keep) {
        Object[] slots = new Object[batch.items()];
        Runnable nothing = along(path, () -> {});
        nothing.run();
        along(path, () -> batch.fill(slots, 0)).run();
        if (keep) {
            HELD.add(slots);
        }
        HeldObjects tally = new HeldObjects();
        batch.tally(tally, 1);
        Protocol.say(tally.line(path));
    }

    /** Starts a thread of one sort. */
    private interface Starter {
        Thread start(Runnable task) throws ReflectiveOperationException;
    }

    private static void inThreads(String[] words, Starter starter) throws Exception {
        int count = Integer.parseInt(words[1]);
        Batch batch = new Batch(words, 3);
        Object[] slots = new Object[batch.items() * count];
        along(words[2], () -> {}).run();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < count; t++) {
            int at = t * batch.items();
            threads.add(starter.start(along(words[2], () -> batch.fill(slots, at))));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        HELD.add(slots);
        HeldObjects tally = new HeldObjects();
        batch.tally(tally, count);
        Protocol.say(tally.line(words[2]));
    }

    private static Thread platform(Runnable task) {
        Thread thread = new Thread(task);
        thread.start();
        return thread;
    }

    /** By reflection: the victims are compiled for Java 17, which has no virtual threads. */
    private static Thread virtual(Runnable task) throws ReflectiveOperationException {
        return (Thread)
                Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
    }
}
