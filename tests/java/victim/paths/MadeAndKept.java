package victim.paths;

import java.util.Map;
import victim.Protocol;
import victim.paths.keeper.Keeper;

/** Three accounts: one makes, two keep. */
public final class MadeAndKept {
    private MadeAndKept() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(Map.of("hold", words -> Keeper.hold()));
    }
}
