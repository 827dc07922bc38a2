package dev.heapwarden.examples.servlet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Where there is no agent: the filter and the valve load, and nothing is any different. */
final class WithoutAgentTest {
    @Test
    void nothingIsDifferent() throws Exception {
        assertThrows(
                ClassNotFoundException.class,
                () -> Class.forName("dev.heapwarden.MemoryQuotaExceeded", false, null));
        Map<String, Host.Thrown> kinds =
                Map.of(
                        "own", IllegalStateException::new,
                        "own-oom", OutOfMemoryError::new,
                        "named-alike", Alike::new);
        try (Host host = new Host(kinds)) {
            for (String context : new String[] {"/bare", "/filtered", "/valved"}) {
                assertEquals("part", host.get(context + "/").body());
                assertEquals(500, host.get(context + "/?throw=own").statusCode());
                assertEquals(500, host.get(context + "/?throw=named-alike").statusCode());
                assertThrows(IOException.class, () -> host.get(context + "/?throw=own-oom"));
            }
        }
    }

    /** In an application that brings the API, the agent's errors are of the application's copy. */
    @Test
    void aCopyOfTheErrorsIsRecognised() throws Exception {
        URL classes =
                Path.of(System.getProperty("basedir"), "../../policy-agent/java/classes")
                        .toUri()
                        .toURL();
        try (URLClassLoader application = new URLClassLoader(new URL[] {classes}, null);
                Host host = new Host(Map.of("copy", () -> refusal(application)))) {
            assertEquals(503, host.get("/filtered/?throw=copy").statusCode());
            assertEquals(503, host.get("/valved/?throw=copy").statusCode());
        }
    }

    private static Throwable refusal(ClassLoader loader) {
        try {
            return (Throwable)
                    Class.forName("dev.heapwarden.AllocationRefusedError", true, loader)
                            .getConstructors()[0]
                            .newInstance("shop", 4L, 3L, 2L, 1L);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }
}
