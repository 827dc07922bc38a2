package doorless;

import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import victim.Protocol;

/**
 * A client that a test commands. Nothing takes longer than ten seconds; what does counts as an error.
 *
 * <pre>
 * load COUNT   says "acknowledged errors cut", as numbers (cut: those of the errors without a whole answer), and
 *              the last error
 * drop         says "dropped", or the error
 * count        says the number of units that the server holds, or the error
 * </pre>
 */
public final class Loader {
    private static final int PATIENCE_SECONDS = 10;
    private static final String LATE = "error: no answer in ";
    private static final String CUT = "error: " + CutException.class.getName();
    private static final ExecutorService CALLS =
            Executors.newCachedThreadPool(
                    work -> {
                        Thread thread = new Thread(work, "call");
                        thread.setDaemon(true);
                        return thread;
                    });

    private static int next;

    private Loader() {}

    public static void serve(Target target) throws Exception {
        Protocol.serve(commands(target));
        // Libraries leave threads behind.
        System.exit(0);
    }

    public static Map<String, Protocol.Command> commands(Target target) {
        return Map.of(
                "load", words -> load(target, Integer.parseInt(words[1])),
                "drop",
                        words ->
                                Protocol.say(
                                        bounded(
                                                () -> {
                                                    target.drop();
                                                    return "dropped";
                                                })),
                "count", words -> Protocol.say(bounded(() -> Long.toString(target.count()))));
    }

    private static void load(Target target, int count) {
        int acknowledged = 0;
        int errors = 0;
        int cut = 0;
        String last = "";
        for (int i = 0; i < count; i++) {
            int number = next++;
            String answer =
                    bounded(
                            () -> {
                                target.load(number);
                                return "held";
                            });
            if (answer.equals("held")) {
                acknowledged++;
            } else {
                errors++;
                last = answer;
                if (answer.startsWith(CUT) || answer.startsWith(LATE)) {
                    cut++;
                }
                // A server in trouble is not asked a thousand times for ten seconds each.
                if (errors >= 3) {
                    break;
                }
            }
        }
        Protocol.say(acknowledged + " " + errors + " " + cut + " " + last);
    }

    private static String bounded(Callable<String> call) {
        Future<String> future = CALLS.submit(call);
        try {
            return future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            future.cancel(true);
            return LATE + PATIENCE_SECONDS + " s";
        } catch (ExecutionException failed) {
            return "error: " + String.valueOf(failed.getCause()).replace('\n', ' ');
        } catch (InterruptedException stopped) {
            return "error: interrupted";
        }
    }
}
