package victim;

import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.util.Set;

/**
 * Another Java agent. Loaded while the program runs, it has classes transformed afresh, and changes none; from
 * the command line it does nothing.
 */
public final class OtherAgent {
    private OtherAgent() {}

    /** Does nothing. */
    public static void premain(String arguments) {}

    /** Transforms the classes of these names, which commas separate. */
    public static void agentmain(String names, Instrumentation instrumentation)
            throws UnmodifiableClassException {
        Set<String> wanted = Set.of(names.split(","));
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (wanted.contains(loaded.getName())) {
                instrumentation.retransformClasses(loaded);
                System.out.println("transformed afresh: " + loaded.getName());
            }
        }
    }
}
