package dev.heapwarden.examples.build;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** This JVM has the agent, and the agent answers. */
class AgentTest {
    private static final Pattern ADDRESS = Pattern.compile("\"listen\"\\s*:\\s*\"([^\"]+)\"");

    @Test
    void accountsAreKeptOfThisJvm() throws Exception {
        var runFile = Files.readString(Path.of(System.getProperty("run.file")));
        var address = ADDRESS.matcher(runFile);
        assertTrue(address.find(), runFile);
        var request = HttpRequest.newBuilder(URI.create("http://" + address.group(1) + "/api/v1/accounts"))
                .timeout(Duration.ofSeconds(60))
                .build();
        var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
        assertEquals(200, answer.statusCode());
        assertTrue(answer.body().contains("\"accounts\""), answer.body());
    }
}
