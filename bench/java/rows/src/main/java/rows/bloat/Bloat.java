package rows.bloat;

import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.apache.lucene.index.IndexWriter;
import org.objectweb.asm.tree.analysis.AnalyzerException;
import rows.Checksum;
import rows.Row;
import rows.Settings;

/**
 * An optimiser of bytecode on ASM, in the manner of BLOAT (N. Nystrom, 1998), goes over a part of
 * Lucene's classes: it verifies them, follows constants, nulls and uses through each method, rewrites
 * what they allow, and verifies the outcome.
 */
public final class Bloat implements Row {
    /** Of the whole, an iteration would take too long. */
    private static final List<String> PACKAGES =
            List.of("org/apache/lucene/index/", "org/apache/lucene/util/");

    private static final long EXPECTED = 0x2904160560815a76L;

    private final List<byte[]> classes = new ArrayList<>();

    public Bloat(Settings settings) throws IOException, URISyntaxException {
        Path jar =
                Path.of(IndexWriter.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            List<? extends ZipEntry> entries = Collections.list(zip.entries());
            entries.sort(Comparator.comparing(ZipEntry::getName));
            for (ZipEntry entry : entries) {
                String name = entry.getName();
                if (!name.endsWith(".class") || PACKAGES.stream().noneMatch(name::startsWith)) {
                    continue;
                }
                try (InputStream in = zip.getInputStream(entry)) {
                    classes.add(in.readAllBytes());
                }
            }
        }
    }

    @Override
    public int iterations() {
        return 8;
    }

    @Override
    public long operations() {
        return classes.size();
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() throws AnalyzerException {
        Checksum checksum = new Checksum();
        for (byte[] original : classes) {
            byte[] optimised = Optimiser.optimise(original);
            checksum.write(optimised, 0, optimised.length);
        }
        return checksum.value();
    }
}
