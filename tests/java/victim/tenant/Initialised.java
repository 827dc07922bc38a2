package victim.tenant;

import java.util.HashMap;
import java.util.Map;
import java.util.function.IntSupplier;

/** Allocates as it is initialised, and never after. */
public final class Initialised implements IntSupplier {
    private static final int[] SQUARES = squares(10);
    private static final Map<String, Integer> NAMES = new HashMap<>();

    static {
        NAMES.put("three", 3);
        NAMES.put("four", 4);
    }

    private static int[] squares(int count) {
        int[] squares = new int[count];
        for (int i = 0; i < count; i++) {
            squares[i] = i * i;
        }
        return squares;
    }

    @Override
    public int getAsInt() {
        return SQUARES[3] + NAMES.size();
    }
}
