package dev.heapwarden;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ModuleTest {
    /** Annotations that this module is compiled with must not be wanted by those who use it. */
    @Test
    void a_module_that_requires_it_needs_no_other(@TempDir Path folder)
            throws IOException, URISyntaxException {
        Path module = folder.resolve("module-info.java");
        Files.writeString(module, "module app { requires dev.heapwarden; }");
        Path main = folder.resolve("Main.java");
        Files.writeString(
                main,
                "package app; import dev.heapwarden.*; class Main { void run() throws Exception {"
                        + " Heapwarden.enter(\"a\").close(); Heapwarden.call(\"a\", () -> 1);"
                        + " Heapwarden.listen(pressure -> pressure.kind()); } }");
        Path api =
                Path.of(Heapwarden.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        StringWriter said = new StringWriter();
        PrintWriter writer = new PrintWriter(said);
        int status =
                ToolProvider.findFirst("javac")
                        .orElseThrow()
                        .run(
                                writer, writer, "--module-path", api.toString(), "-Xlint:all",
                                "-Werror", "-d", folder.toString(), module.toString(),
                                main.toString());
        assertEquals("", said.toString());
        assertEquals(0, status);
    }
}
