package victim;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.Registration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * A program that listens, and uses neither scopes nor masks.
 *
 * <pre>
 * listen ACCOUNT MIB   registers a listener that allocates as much, and keeps nothing of it
 * leak MIB             until refused, or as much is held; "refused" or "held"
 * heard                what the listener came to
 * </pre>
 */
public final class PressureListener {
    private static final int PIECE = 64 << 10;
    private static final List<Object> HELD = new ArrayList<>();
    private static final List<String> HEARD = Collections.synchronizedList(new ArrayList<>());
    private static final List<Registration> REGISTRATIONS = new ArrayList<>();
    private static volatile Object last;

    private PressureListener() {}

    public static void main(String[] args) throws Exception {
        Protocol.serve(
                Map.of(
                        "listen", words -> listen(words[1], pieces(words[2])),
                        "leak", words -> leak(pieces(words[1])),
                        "heard", words -> HEARD.forEach(Protocol::say)));
    }

    private static int pieces(String mebibytes) {
        return Integer.parseInt(mebibytes) * ((1 << 20) / PIECE);
    }

    private static void listen(String account, int pieces) {
        REGISTRATIONS.add(
                Heapwarden.listen(
                        account, pressure -> HEARD.add(pressure.kind() + " " + allocate(pieces))));
    }

    private static String allocate(int pieces) {
        try {
            for (int i = 0; i < pieces; i++) {
                last = new byte[PIECE];
            }
            return "allocated";
        } catch (OutOfMemoryError refused) {
            return "refused";
        }
    }

    private static void leak(int pieces) {
        try {
            for (int i = 0; i < pieces; i++) {
                HELD.add(new byte[PIECE]);
                // Not so fast that it has all before a collection shows what it holds.
                if (i % 16 == 0) {
                    LockSupport.parkNanos(20_000_000);
                }
            }
        } catch (OutOfMemoryError refused) {
            Protocol.say("refused");
            return;
        }
        Protocol.say("held");
    }
}
