package victim.tenant;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Is told of things by the JDK, and tells the JDK of things. */
public final class Diary extends Handler implements Thread.UncaughtExceptionHandler {
    private volatile int entries;
    private volatile Object latest;

    @Override
    public void uncaughtException(Thread thread, Throwable error) {
        enter(error);
    }

    @Override
    public void publish(LogRecord entry) {
        enter(entry);
    }

    private void enter(Object entry) {
        latest = new Object[] {latest, entry};
        entries = entries + 1;
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}

    public int entries() {
        return entries;
    }

    /** Allocates nothing itself. */
    public static void log(Logger logger, String message) {
        logger.info(message);
    }

    /** Returns the action of a shutdown hook: writes {@code goodbye} to the file. */
    public static Runnable farewell(Path file) {
        return () -> {
            try {
                Files.writeString(file, String.join("", "good", "bye"));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        };
    }
}
