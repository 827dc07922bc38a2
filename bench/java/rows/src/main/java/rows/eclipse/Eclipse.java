package rows.eclipse;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import rows.Checksum;
import rows.Row;
import rows.Settings;
import rows.SourceJar;

/**
 * The Eclipse compiler for Java compiles Apache Commons Collections from its sources. It is told a
 * release, so that it sees the same library whatever JDK runs it. Its sources come from memory, and
 * what it generates stays there.
 */
public final class Eclipse implements Row {
    private static final String SOURCES = "commons-collections4-4.5.0-sources.jar";

    /** The oldest JDK under test: its library is the same whichever JDK describes it. */
    private static final String RELEASE = "17";

    private static final List<String> OPTIONS =
            List.of(
                    "--release", RELEASE, "-classpath", "", "-encoding", "UTF-8", "-g", "-nowarn",
                    "-proc:none");

    private static final long EXPECTED = 0x8c8da0439170ffc4L;

    private final SortedMap<String, String> sources;

    public Eclipse(Settings settings) throws IOException {
        // The compiler starts threads for each compilation, whose allocation nobody could count later.
        System.setProperty("jdt.compiler.useSingleThread", "true");
        sources = SourceJar.read(settings.inputs().resolve(SOURCES));
    }

    /** There is much code to compile. */
    @Override
    public int warmups() {
        return 8;
    }

    @Override
    public int iterations() {
        return 7;
    }

    @Override
    public long operations() {
        return sources.size();
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() {
        StringWriter messages = new StringWriter();
        InMemoryCompiler compiler =
                new InMemoryCompiler(sources, new PrintWriter(messages, true));
        List<String> arguments = new ArrayList<>(OPTIONS);
        arguments.addAll(sources.keySet());
        if (!compiler.compile(arguments.toArray(String[]::new))) {
            throw new IllegalStateException("the sources do not compile: " + messages);
        }
        Checksum checksum = new Checksum();
        compiler.classes()
                .forEach(
                        (name, octets) -> {
                            checksum.add(name);
                            checksum.write(octets, 0, octets.length);
                        });
        return checksum.value();
    }
}
