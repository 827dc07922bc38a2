package rows;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Collections;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/** Java sources as their project published them. */
public final class SourceJar {
    private SourceJar() {}

    /**
     * Text of each Java file of {@code jar} by its path in it, in the order of the paths. Descriptions
     * of packages and modules are left out.
     *
     * @throws IOException when the jar is not there or broken
     */
    public static SortedMap<String, String> read(Path jar) throws IOException {
        SortedMap<String, String> texts = new TreeMap<>();
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            for (ZipEntry entry : Collections.list(zip.entries())) {
                String path = entry.getName();
                if (!path.endsWith(".java") || path.endsWith("-info.java")) {
                    continue;
                }
                try (InputStream in = zip.getInputStream(entry)) {
                    texts.put(path, new String(in.readAllBytes(), StandardCharsets.UTF_8));
                }
            }
        }
        return Collections.unmodifiableSortedMap(texts);
    }
}
