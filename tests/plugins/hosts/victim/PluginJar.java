package victim;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;

/** Makes the jar of a plugin. */
final class PluginJar {
    private PluginJar() {}

    /** With these headers in its manifest, these further files, and what is below the folders. */
    static Path make(
            Path jar, Map<String, String> headers, Map<String, String> files, String... folders)
            throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        headers.forEach(manifest.getMainAttributes()::putValue);
        Files.createDirectories(jar.toAbsolutePath().getParent());
        try (OutputStream out = Files.newOutputStream(jar);
                JarOutputStream entries = new JarOutputStream(out, manifest)) {
            for (Map.Entry<String, String> file : files.entrySet()) {
                entries.putNextEntry(new JarEntry(file.getKey()));
                entries.write(file.getValue().getBytes(StandardCharsets.UTF_8));
            }
            for (String folder : folders) {
                for (Path file : filesBelow(Path.of(folder))) {
                    String name = Path.of(folder).relativize(file).toString();
                    entries.putNextEntry(new JarEntry(name));
                    entries.write(Files.readAllBytes(file));
                }
            }
        }
        return jar;
    }

    private static List<Path> filesBelow(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            return all.filter(Files::isRegularFile).toList();
        }
    }
}
