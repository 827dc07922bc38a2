package victim;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * The line protocol between a victim and its test.
 *
 * <p>One command a line on standard input; every answer line begins with {@code "@ "}, the last is
 * {@code "@ ok"} or {@code "@ failed …"}. Everything else on standard output is ordinary output and
 * is kept by the harness as such. {@code gc}, {@code pid} and {@code exit} are built in.
 */
public final class Protocol {
    private Protocol() {}

    /** The action of a command; its words include the command itself. */
    public interface Command {
        void run(String[] words) throws Exception;
    }

    public static void say(String line) {
        System.out.println("@ " + line);
        System.out.flush();
    }

    /** Serves until {@code exit} or the end of input. */
    public static void serve(Map<String, Command> commands) throws IOException {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("ok");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.trim().split(" +");
            if (words[0].equals("exit")) {
                return;
            }
            try {
                answer(commands, words);
                say("ok");
            } catch (Exception | LinkageError | AssertionError e) {
                e.printStackTrace();
                say("failed " + e);
            }
        }
    }

    private static void answer(Map<String, Command> commands, String[] words) throws Exception {
        if (words[0].equals("gc")) {
            System.gc();
        } else if (words[0].equals("pid")) {
            say("pid " + ProcessHandle.current().pid());
        } else if (commands.containsKey(words[0])) {
            commands.get(words[0]).run(words);
        } else {
            throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }
}
