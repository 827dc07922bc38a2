package rows.jython;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.python.core.Options;
import org.python.core.PyObject;
import org.python.core.PyString;
import org.python.util.PythonInterpreter;
import rows.Checksum;
import rows.Row;
import rows.Settings;

/** Jython runs programs in Python, each of which returns a text. */
public final class Jython implements Row {
    private static final List<String> PROGRAMS =
            List.of("inventory", "interpreter", "matrices", "puzzles", "wordcount");

    /** Times that each program runs in one iteration. */
    private static final int ROUNDS = 2;

    private static final long EXPECTED = 0x4cd37f9d208e0d6fL;

    private final List<PyObject> runs = new ArrayList<>();

    public Jython(Settings settings) throws IOException {
        Properties properties = new Properties();
        // Nothing is written to a cache, and nothing is looked for that is not needed.
        properties.setProperty("python.cachedir.skip", "true");
        properties.setProperty("python.import.site", "false");
        PythonInterpreter.initialize(System.getProperties(), properties, new String[0]);
        Options.dont_write_bytecode = true;
        for (String program : PROGRAMS) {
            runs.add(load(program));
        }
    }

    /** Compiles a program, and returns its function {@code run}. */
    private static PyObject load(String program) throws IOException {
        String file = "/rows/jython/" + program + ".py";
        try (InputStream in = Jython.class.getResourceAsStream(file)) {
            if (in == null) {
                throw new IOException(file + " is not in the program");
            }
            PythonInterpreter interpreter = new PythonInterpreter();
            interpreter.execfile(in, program + ".py");
            return interpreter.get("run");
        }
    }

    /** Its interpreter's code is compiled late, and iterations are short. */
    @Override
    public int warmups() {
        return 8;
    }

    @Override
    public int iterations() {
        return 18;
    }

    @Override
    public long operations() {
        return (long) ROUNDS * runs.size();
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() {
        Checksum checksum = new Checksum();
        for (int round = 0; round < ROUNDS; round++) {
            for (PyObject run : runs) {
                checksum.add(((PyString) run.__call__()).getString());
            }
        }
        return checksum.value();
    }
}
