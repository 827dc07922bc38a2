package dev.heapwarden.servlet.javax;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Both modules have the same code. A change of one belongs into the other. */
final class SourcesTest {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "main/java/dev/heapwarden/servlet/NAMESPACE/AdmissionFilter.java",
                "main/java/dev/heapwarden/servlet/NAMESPACE/AdmissionInitializer.java",
                "test/java/dev/heapwarden/servlet/NAMESPACE/Site.java",
                "test/java/dev/heapwarden/servlet/NAMESPACE/WithAgentTest.java",
                "test/java/dev/heapwarden/servlet/NAMESPACE/WithoutAgentTest.java",
            })
    void the_code_is_that_of_the_other_namespace(String file) throws IOException {
        Path modules = Path.of("").toAbsolutePath().getParent();
        assertEquals(
                read(modules, "jakarta", file).replace("jakarta", "javax"),
                read(modules, "javax", file));
    }

    private static String read(Path modules, String namespace, String file) throws IOException {
        return Files.readString(
                modules.resolve("heapwarden-servlet-" + namespace)
                        .resolve("src")
                        .resolve(file.replace("NAMESPACE", namespace)));
    }
}
