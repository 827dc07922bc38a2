package victim.invariants;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.logging.FileHandler;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import victim.tenant.Diary;

/** Handlers of errors and of log records, and shutdown hooks. */
final class Handlers {
    private Handlers() {}

    static void addTo(Map<String, Callable<Row>> rows) {
        rows.put("uncaught-handler", Uncaught::new);
        rows.put("log-handler", OwnHandler::new);
        rows.put("logger", OthersHandler::new);
        rows.put("shutdown-hook", Hook::new);
    }

    private static final class Uncaught implements Row {
        private Diary[] diaries;

        @Override
        public void prepare(int trials) {
            diaries = new Diary[trials];
            for (int trial = 0; trial < trials; trial++) {
                diaries[trial] = new Diary();
            }
        }

        @Override
        public void during(int trial) throws InterruptedException {
            Thread thread =
                    new Thread(
                            () -> {
                                throw new IllegalStateException("to be noted");
                            });
            thread.setUncaughtExceptionHandler(diaries[trial]);
            thread.start();
            thread.join();
        }

        @Override
        public String after(int trial) {
            return diaries[trial].entries() == 1 ? null : "nobody knows why the thread died";
        }
    }

    /** The host logs, and one of its handlers is the tenant's. */
    private static final class OwnHandler implements Row {
        private final Logger logger = Logger.getAnonymousLogger();
        private final Diary diary = new Diary();
        private int noted;
        private int trials;

        @Override
        public void prepare(int count) {
            trials = count;
            logger.setUseParentHandlers(false);
            logger.addHandler(diary);
        }

        @Override
        public void during(int trial) {
            logger.info("to be noted");
        }

        @Override
        public String after(int trial) {
            noted = diary.entries();
            return noted == trials ? null : "of " + trials + " records " + noted + " were noted";
        }
    }

    /** The tenant logs into the host's file. */
    private static final class OthersHandler implements Row {
        private final Logger logger = Logger.getAnonymousLogger();
        private final Path file;
        private String[] messages;

        OthersHandler() throws IOException {
            // A file of its own: its handler stays open.
            file = Files.createTempFile(Path.of("").toAbsolutePath(), "others", ".log");
        }

        @Override
        public void prepare(int trials) throws Exception {
            FileHandler handler = new FileHandler(file.toString());
            handler.setFormatter(new SimpleFormatter());
            logger.setUseParentHandlers(false);
            logger.addHandler(handler);
            messages = new String[trials];
            for (int trial = 0; trial < trials; trial++) {
                messages[trial] = "message " + trial + ";";
            }
        }

        @Override
        public void during(int trial) {
            Diary.log(logger, messages[trial]);
        }

        @Override
        public String after(int trial) throws Exception {
            List<String> lines = Files.readAllLines(file);
            long found = lines.stream().filter(line -> line.endsWith(messages[trial])).count();
            return found == 1 ? null : messages[trial] + " is there " + found + " times";
        }
    }

    /** The test reads the file once the JVM has ended, so there is nothing to see before. */
    private static final class Hook implements Row {
        private final Path file = Path.of("farewell.txt").toAbsolutePath();

        @Override
        public void prepare(int trials) {
            Runtime.getRuntime().addShutdownHook(new Thread(Diary.farewell(file)));
        }

        @Override
        public void during(int trial) {}

        @Override
        public String after(int trial) {
            return Files.exists(file) ? "the hook has run already" : null;
        }
    }
}
