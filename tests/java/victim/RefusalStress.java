package victim;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.LongFunction;
import victim.stress.Asking;
import victim.stress.Compiling;
import victim.stress.Program;
import victim.stress.Transforming;

/**
 * Real programs as tenants, beside neighbours who share the JDK, a Jetty and copies of their code.
 *
 * <pre>
 * learn NAME   the program answers, and is believed
 * begin        every program runs over and over
 * status       a line for each: its runs by outcome
 * end          the programs stop; answers the same
 * verify NAME  the program answers as it did at first
 * </pre>
 */
public final class RefusalStress {
    /** Less than what the harness grants one command. */
    private static final long LONGEST_END_NS = 540_000_000_000L;

    private static final List<Program> PROGRAMS = new ArrayList<>();
    private static final ClassLoader PARENT = RefusalStress.class.getClassLoader();

    private RefusalStress() {}

    /** The folder of the tenants' code, and the one with the storm's jar and its libraries. */
    public static void main(String[] args) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler(RefusalStress::report);
        URL[] bazaar = {Path.of(args[0]).toUri().toURL()};
        URL[] jars = jars(Path.of(args[1]));
        add("compiler", false, PARENT, new Compiling());
        add("transformer", false, PARENT, new Transforming());
        addService("bazaar", false, bazaar, "tenant.Bazaar");
        addService("database", false, jars, "storm.Bank");
        addService("bazaar-neighbour", true, bazaar, "tenant.Bazaar");
        addService("database-neighbour", true, jars, "storm.Bank");
        // The server is nobody's: its loader has no name.
        Callable<Integer> site = load(new URLClassLoader(jars, PARENT), "storm.Site");
        int port = site.call();
        add("shop", false, PARENT, new Asking(port, "/shop"));
        add("shop-neighbour", true, PARENT, new Asking(port, "/neighbour"));
        Protocol.serve(
                Map.of(
                        "learn", words -> program(words[1]).learn(),
                        "begin", words -> PROGRAMS.forEach(Program::start),
                        "status", words -> status(),
                        "end", words -> end(),
                        "verify", words -> program(words[1]).verify()));
    }

    private static void report(Thread thread, Throwable error) {
        System.err.println(thread.getName() + " ended by " + error);
    }

    private static URL[] jars(Path folder) throws IOException {
        List<URL> found = new ArrayList<>();
        found.add(folder.resolve("storm.jar").toUri().toURL());
        try (DirectoryStream<Path> libraries = Files.newDirectoryStream(folder.resolve("lib"))) {
            for (Path library : libraries) {
                found.add(library.toUri().toURL());
            }
        }
        return found.toArray(new URL[0]);
    }

    private static void add(
            String name, boolean neighbour, ClassLoader context, LongFunction<String> code) {
        PROGRAMS.add(new Program(name, neighbour, context, code));
    }

    private static void addService(String name, boolean neighbour, URL[] code, String main)
            throws ReflectiveOperationException {
        ClassLoader own = new URLClassLoader(name, code, PARENT);
        add(name, neighbour, own, load(own, main));
    }

    @SuppressWarnings("unchecked")
    private static <T> T load(ClassLoader loader, String name)
            throws ReflectiveOperationException {
        return (T) Class.forName(name, true, loader).getDeclaredConstructor().newInstance();
    }

    private static Program program(String name) {
        return PROGRAMS.stream().filter(program -> program.isNamed(name)).findFirst().orElseThrow();
    }

    private static void status() {
        for (Program program : PROGRAMS) {
            Protocol.say(program.report());
        }
        if (PROGRAMS.stream().anyMatch(Program::isHung)) {
            dumpThreads();
        }
    }

    private static void end() throws InterruptedException {
        PROGRAMS.forEach(Program::stop);
        long deadline = System.nanoTime() + LONGEST_END_NS;
        boolean ended = true;
        for (Program program : PROGRAMS) {
            ended &= program.awaitEnd(deadline);
        }
        status();
        if (!ended) {
            PROGRAMS.forEach(program -> System.err.println(program.report()));
            dumpThreads();
            throw new AssertionError("a program does not come to its end");
        }
    }

    private static void dumpThreads() {
        for (Map.Entry<Thread, StackTraceElement[]> stack :
                Thread.getAllStackTraces().entrySet()) {
            System.err.println(stack.getKey());
            for (StackTraceElement frame : stack.getValue()) {
                System.err.println("\tat " + frame);
            }
        }
    }
}
