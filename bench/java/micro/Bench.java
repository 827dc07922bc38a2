package micro;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;

/** Shared by the programs: how they speak with the bench, and their services. */
final class Bench {
    /** The object allocated last, kept so that the compiler cannot leave it out. */
    static volatile Object sink;

    private Bench() {}

    /** Prints a line and waits until the bench has looked at the JVM from outside. */
    static void pause(String line) throws IOException {
        System.out.println(line);
        System.in.read();
    }

    /** A loader that stands for a deployed service. */
    static ClassLoader service(String name) {
        return new URLClassLoader(name, new URL[0], Bench.class.getClassLoader());
    }

    /** The generated chain of that depth. */
    static Chain chain(int depth) throws ReflectiveOperationException {
        return (Chain) Class.forName(chainName(depth)).getDeclaredConstructor().newInstance();
    }

    static String chainName(int depth) {
        return String.format("chain.Depth%03d_000000", depth);
    }
}
