package rows;

import java.nio.file.Path;

/**
 * The settings of a row.
 *
 * @param inputs folder of the inputs that come from a registry
 * @param threads how many threads work, in the rows whose work is parallel
 */
public record Settings(Path inputs, int threads) {
    /** Threads if the user asks for no other number. */
    static final int DEFAULT_THREADS = 4;
}
