import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Logback, which comes with Cassandra and logs everything by default. */
final class Quiet {
    private Quiet() {}

    /** To be called before anything is logged. */
    static void logging(Path folder) throws IOException {
        Path settings = folder.resolve("logback.xml");
        Files.writeString(
                settings,
                "<configuration><root level=\"OFF\"/></configuration>",
                StandardCharsets.UTF_8);
        System.setProperty("logback.configurationFile", settings.toString());
    }
}
