package victim;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import victim.contexts.Examples;
import victim.contexts.Loops;
import victim.contexts.Paths;
import victim.contexts.Throwing;

/**
 * Programs whose allocations by calling context are known. This class is in no package that contexts are counted
 * of; those that allocate are.
 *
 * <pre>
 * examples             the examples of the paper about the profiler JP
 * mixed ROUNDS         calls by many paths
 * recurse DEPTH        an object at each depth
 * wide DEPTH           two methods that call each other in each order, up to this depth
 * exceptions ROUNDS    exceptions through frames, caught within the packages and outside
 * threads N ROUNDS     on N virtual threads, or platform threads
 * loops N              methods whose instructions are known
 * </pre>
 */
public final class ContextWays {
    /** Where threads keep what they made last; here, because its initialiser allocates. */
    public static final ThreadLocal<Object> SINK = new ThreadLocal<>();

    private ContextWays() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(
                Map.of(
                        "examples", words -> Examples.run(),
                        "mixed", words -> Paths.mixed(Integer.parseInt(words[1])),
                        "recurse", words -> Paths.recurse(Integer.parseInt(words[1])),
                        "wide", words -> Paths.wide(Integer.parseInt(words[1])),
                        "exceptions", words -> exceptions(Integer.parseInt(words[1])),
                        "loops", words -> Loops.run(Integer.parseInt(words[1])),
                        "threads",
                                words ->
                                        threads(
                                                Integer.parseInt(words[1]),
                                                Integer.parseInt(words[2]))));
    }

    /** Each exception is caught here, and each call after it begins anew. */
    private static void exceptions(int rounds) {
        for (int round = 0; round < rounds; round++) {
            Throwing.caughtWithin(3);
            Throwing.beneath();
            caught(() -> Throwing.through(3));
            caught(() -> Throwing.inConstructor(true));
            caught(() -> Throwing.inConstructor(false));
            // Nobody but this catches what these constructors throw.
            Supplier<Object> before = Throwing.Before::new;
            caught(before);
            Supplier<Object> after = Throwing.After::new;
            caught(after);
            Paths.once();
        }
    }

    private static void caught(Supplier<Object> what) {
        try {
            what.get();
            throw new AssertionError("nothing was thrown");
        } catch (IllegalStateException expected) {
            Paths.once();
        }
    }

    private static void threads(int count, int rounds) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            threads.add(ExactWays.factory().newThread(() -> Paths.yielding(rounds)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
