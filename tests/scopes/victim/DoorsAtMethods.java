package victim;

import com.acme.counter.Counter;
import com.acme.desk.Desk;
import com.acme.late.Late;
import com.sun.management.ThreadMXBean;
import dev.heapwarden.Heapwarden;
import dev.heapwarden.Scope;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.function.Function;

/**
 * Calls methods at which a policy may have put doors. Says "in", or "turned away CLASS: MESSAGE", and behind it how
 * often methods of that class ran, if this call was one of them.
 *
 * <pre>
 * desk WHAT              does it at the desk, see there
 * many TIMES WHAT        the same so often; says how many came in
 * virtual WHAT           the same on a virtual thread; says "none" before JDK 21
 * scope NAME WHAT        the same in a scope
 * neighbour, late        calls their doors
 * deploy NAME            a service with a desk of its own
 * service NAME WHAT      does it at that desk, on a thread with the service's context class loader
 * bare NAME WHAT         the same on a thread with the program's
 * begin WHAT, end        the same as "desk" on a thread of its own, which goes on meanwhile; waits for it
 * cost TIMES             calls with a door and without: nanoseconds of each call, and bytes of all
 * </pre>
 */
public final class DoorsAtMethods {
    private static final Map<String, Function<String, Object>> SERVICES = new HashMap<>();
    private static final Desk DESK = new Desk();
    private static FutureTask<String> begun;

    private DoorsAtMethods() {}

    public static void main(String[] arguments) throws Exception {
        DESK.apply("ran");
        Map<String, Protocol.Command> commands = new HashMap<>();
        commands.put("desk", words -> tell(call(DESK, what(words, 1))));
        commands.put("many", words -> many(Integer.parseInt(words[1]), what(words, 2)));
        commands.put("virtual", words -> virtual(() -> call(DESK, what(words, 1))));
        commands.put(
                "scope",
                words -> {
                    try (Scope open = Heapwarden.enter(words[1])) {
                        tell(call(DESK, what(words, 2)));
                    }
                });
        commands.put("neighbour", words -> tell(call(new Counter(), "serve")));
        commands.put("late", words -> tell(call(new Late(), "order")));
        commands.put("deploy", words -> SERVICES.put(words[1], deploy(words[1])));
        commands.put("service", words -> serve(words, true));
        commands.put("bare", words -> serve(words, false));
        commands.put(
                "begin",
                words -> {
                    begun = new FutureTask<>(() -> call(DESK, what(words, 1)));
                    new Thread(begun).start();
                });
        commands.put("end", words -> tell(begun.get()));
        commands.put("cost", words -> cost(Integer.parseInt(words[1])));
        Protocol.serve(commands);
    }

    private static String what(String[] words, int from) {
        return String.join(" ", Arrays.copyOfRange(words, from, words.length));
    }

    private static void tell(String answer) {
        Protocol.say(answer);
    }

    private static String call(Function<String, Object> desk, String what) {
        int before = (Integer) desk.apply("ran");
        String answer;
        try {
            desk.apply(what);
            answer = "in";
        } catch (NullPointerException own) {
            answer = "threw";
        } catch (Throwable refused) {
            String cause = refused.getCause() == null ? "" : " " + refused.getCause();
            answer = "turned away " + refused.getClass().getName() + ": " + refused.getMessage() + cause;
        }
        return answer + " " + ((Integer) desk.apply("ran") - before);
    }

    private static void many(int times, String what) {
        int in = 0;
        for (int i = 0; i < times; i++) {
            in += call(DESK, what).startsWith("in ") ? 1 : 0;
        }
        tell(Integer.toString(in));
    }

    private static void virtual(Callable<String> work) throws Exception {
        FutureTask<String> task = new FutureTask<>(work);
        try {
            Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
            tell(task.get());
        } catch (NoSuchMethodException | InvocationTargetException none) {
            // A method of a preview throws.
            tell("none");
        }
    }

    @SuppressWarnings("unchecked")
    private static Function<String, Object> deploy(String name) throws Exception {
        Path classes =
                Path.of(Desk.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        ClassLoader loader =
                new URLClassLoader(
                        name,
                        new URL[] {classes.toUri().toURL()},
                        ClassLoader.getPlatformClassLoader());
        return (Function<String, Object>)
                Class.forName(Desk.class.getName(), true, loader)
                        .getDeclaredConstructor()
                        .newInstance();
    }

    private static void serve(String[] words, boolean withContext) throws Exception {
        Function<String, Object> desk = SERVICES.get(words[1]);
        FutureTask<String> task = new FutureTask<>(() -> call(desk, what(words, 2)));
        Thread thread = new Thread(task);
        if (withContext) {
            thread.setContextClassLoader(desk.getClass().getClassLoader());
        }
        thread.start();
        tell(task.get());
    }

    private static void cost(int times) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        String[] kinds = {"none ", "doors "};
        double[] best = {Double.MAX_VALUE, Double.MAX_VALUE};
        long[] bytes = {Long.MAX_VALUE, Long.MAX_VALUE};
        for (int round = 0; round < 10; round++) {
            for (int kind = 0; kind < kinds.length; kind++) {
                String what = kinds[kind] + times;
                long before = threads.getCurrentThreadAllocatedBytes();
                long start = System.nanoTime();
                DESK.apply(what);
                long took = System.nanoTime() - start;
                long made = threads.getCurrentThreadAllocatedBytes() - before;
                best[kind] = Math.min(best[kind], (double) took / times);
                bytes[kind] = Math.min(bytes[kind], made);
            }
        }
        tell("nanoseconds " + (best[1] - best[0]));
        tell("bytes " + (bytes[1] - bytes[0]));
    }
}
