package rows;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.Locale;
import java.util.TimeZone;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.SAXParserFactory;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLOutputFactory;
import javax.xml.transform.TransformerFactory;

/**
 * Runs one row and speaks with the harness in lines: after the warm-ups {@code begin}, after the timed
 * iterations a report in JSON and {@code end}, after two collections the live bytes and {@code
 * collected}; if it is to take turns with other JVMs, {@code turn} before each iteration. At each of
 * the words it waits for a line.
 */
public final class Main {
    /** The user asked for what there is not. */
    private static final int EXIT_USAGE = 2;

    /** The work went wrong. */
    private static final int EXIT_FAILED = 1;

    private final PrintStream out;

    private Main(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] words) {
        PrintStream out = System.out;
        // Standard output is the protocol's alone, and libraries talk.
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        // Results must not depend on where the machine stands, nor on a screen.
        Locale.setDefault(Locale.ENGLISH);
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        System.setProperty("java.awt.headless", "true");
        useXmlOfTheJdk();
        // Threads of a library must not keep the JVM.
        System.exit(new Main(out).run(words));
    }

    /** All libraries are on one class path, and some offer their own XML to those that just ask for XML. */
    private static void useXmlOfTheJdk() {
        pin(DocumentBuilderFactory.class, DocumentBuilderFactory.newDefaultInstance());
        pin(SAXParserFactory.class, SAXParserFactory.newDefaultInstance());
        pin(TransformerFactory.class, TransformerFactory.newDefaultInstance());
        pin(XMLInputFactory.class, XMLInputFactory.newDefaultFactory());
        pin(XMLOutputFactory.class, XMLOutputFactory.newDefaultFactory());
    }

    private static <T> void pin(Class<T> factory, T ofJdk) {
        System.setProperty(factory.getName(), ofJdk.getClass().getName());
    }

    private int run(String[] words) {
        try {
            Arguments arguments = Arguments.parse(words);
            if (arguments.list()) {
                Rows.names().forEach(out::println);
            } else {
                measure(arguments, open(arguments));
            }
            return 0;
        } catch (Unsuitable e) {
            System.err.println(e.getMessage());
            return EXIT_USAGE;
        } catch (WrongResult e) {
            System.err.println(e.getMessage());
            return EXIT_FAILED;
        } catch (Throwable e) {
            // An error too must end the JVM, which threads of a library may hold.
            e.printStackTrace();
            return EXIT_FAILED;
        }
    }

    private static Row open(Arguments arguments) throws Exception {
        Rows.Opener opener = Rows.named(arguments.row());
        if (opener == null) {
            throw new Unsuitable(
                    "there is no row " + arguments.row() + "; rows.Main --list names them all");
        }
        Path inputs = Path.of(System.getProperty("rows.inputs", "target/inputs"));
        return opener.open(new Settings(inputs, arguments.threads()));
    }

    private void measure(Arguments arguments, Row row) throws Exception {
        int warmups = arguments.warmups() == null ? row.warmups() : arguments.warmups();
        int iterations = arguments.iterations() == null ? row.iterations() : arguments.iterations();
        for (int i = 0; i < warmups; i++) {
            turn(arguments);
            iterate(arguments.row(), row);
        }
        pause("begin");
        Report report = new Report(arguments.row(), row.expected());
        for (int i = 0; i < iterations; i++) {
            turn(arguments);
            long begunNs = System.nanoTime();
            iterate(arguments.row(), row);
            report.iteration(System.nanoTime() - begunNs, row.operations());
        }
        report.end();
        out.println(report.json());
        pause("end");
        // The second collection takes what reference handlers let go after the first.
        System.gc();
        System.gc();
        long liveBytes =
                ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        Reference.reachabilityFence(row);
        out.println("{\"live_bytes\":" + liveBytes + "}");
        pause("collected");
    }

    private void turn(Arguments arguments) throws IOException {
        if (arguments.turns()) {
            pause("turn");
        }
    }

    private static void iterate(String name, Row row) throws Exception {
        long checksum = row.iterate();
        if (checksum != row.expected()) {
            throw new WrongResult(
                    String.format(
                            "%s: the checksum should be %016x, and is %016x",
                            name, row.expected(), checksum));
        }
    }

    /** Prints a word and waits until the harness has looked at the JVM from outside. */
    private void pause(String word) throws IOException {
        out.println(word);
        out.flush();
        int octet;
        do {
            octet = System.in.read();
        } while (octet != '\n' && octet != -1);
    }

    /** An iteration gave another result than it must. */
    private static final class WrongResult extends Exception {
        private static final long serialVersionUID = 1;

        WrongResult(String message) {
            super(message);
        }
    }
}
