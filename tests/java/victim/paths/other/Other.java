package victim.paths.other;

import java.util.ArrayList;
import java.util.List;

/** A third account. */
public final class Other {
    public static final List<byte[]> SHARED = new ArrayList<>();

    private Other() {}
}
