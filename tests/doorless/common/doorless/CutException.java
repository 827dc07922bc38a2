package doorless;

import java.io.IOException;

/** A connection that ended before its answer did, or an answer that never came. */
public final class CutException extends IOException {
    private static final long serialVersionUID = 1;

    public CutException(IOException cause) {
        super("cut: " + cause, cause);
    }
}
