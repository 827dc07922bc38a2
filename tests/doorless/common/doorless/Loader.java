package doorless;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import victim.Protocol;

/**
 * A client that a test commands. Nothing takes longer than ten seconds; what does counts as an error.
 *
 * <pre>
 * load COUNT     says "done errors cut", as numbers (cut: those of the errors without a whole answer), and the
 *                last error
 * read COUNT     the same of requests that keep nothing
 * delete COUNT   the same of units that were acknowledged and are let go, one by one
 * drop           says "dropped", or the error
 * count          says the number of units that the server holds, or the error
 * </pre>
 */
public final class Loader {
    private static final int PATIENCE_SECONDS = 10;
    private static final String DONE = "done";
    private static final String LATE = "error: no answer in ";
    private static final String CUT = "error: " + CutException.class.getName();
    private static final ExecutorService CALLS =
            Executors.newCachedThreadPool(
                    work -> {
                        Thread thread = new Thread(work, "call");
                        thread.setDaemon(true);
                        return thread;
                    });

    /** Acknowledged units. */
    private static final Deque<Integer> HELD = new ArrayDeque<>();

    private static int next;

    private Loader() {}

    public static void serve(Target target) throws Exception {
        Main.serve(commands(target));
    }

    private static Map<String, Protocol.Command> commands(Target target) {
        return Map.of(
                "load", words -> repeat(Integer.parseInt(words[1]), 3, () -> load(target)),
                "read",
                        words ->
                                repeat(
                                        Integer.parseInt(words[1]),
                                        Integer.MAX_VALUE,
                                        () -> bounded(target::read)),
                "delete",
                        words ->
                                repeat(
                                        Integer.parseInt(words[1]),
                                        Integer.MAX_VALUE,
                                        () -> delete(target)),
                "drop",
                        words -> {
                            String answer = bounded(target::drop);
                            if (answer.equals(DONE)) {
                                HELD.clear();
                            }
                            Protocol.say(answer);
                        },
                "count", words -> Protocol.say(bounded(() -> Long.toString(target.count()))));
    }

    private static String load(Target target) {
        int number = next++;
        String answer = bounded(() -> target.load(number));
        if (answer.equals(DONE)) {
            HELD.addLast(number);
        }
        return answer;
    }

    private static String delete(Target target) {
        Integer number = HELD.peekFirst();
        if (number == null) {
            return "error: nothing is held";
        }
        String answer = bounded(() -> target.delete(number));
        if (answer.equals(DONE)) {
            HELD.removeFirst();
        }
        return answer;
    }

    /** A server in trouble is not asked a thousand times for ten seconds each. */
    private static void repeat(int count, int mostErrors, Supplier<String> call) {
        int done = 0;
        int errors = 0;
        int cut = 0;
        String last = "";
        for (int i = 0; i < count && errors < mostErrors && cut < 3; i++) {
            String answer = call.get();
            if (answer.equals(DONE)) {
                done++;
            } else {
                errors++;
                last = answer;
                if (answer.startsWith(CUT) || answer.startsWith(LATE)) {
                    cut++;
                }
            }
        }
        Protocol.say(done + " " + errors + " " + cut + " " + last);
    }

    private interface Call {
        void run() throws Exception;
    }

    private static String bounded(Call call) {
        return bounded(
                () -> {
                    call.run();
                    return DONE;
                });
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
