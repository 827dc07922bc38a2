package victim;

import java.util.Map;
import victim.instances.Shop;

/** Asks {@link Shop} to hold objects whose number and contents the test knows. */
public final class Instances {
    private Instances() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(
                Map.of(
                        "many", words -> Shop.many(),
                        "one-of-each", words -> Shop.oneOfEach(),
                        "touched", words -> Protocol.say("touched " + Shop.touched),
                        "drop", words -> Shop.drop(),
                        "alive", words -> Protocol.say("alive " + Shop.alive()),
                        "allocate", words -> Shop.allocate(Integer.parseInt(words[1]))));
    }
}
