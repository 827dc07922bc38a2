package victim;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;

/**
 * Loads plugins as a host does, and calls them with the context class loader as it is.
 *
 * <pre>
 * load NAME                 loads a plugin
 * call NAME LENGTH COUNT    COUNT arrays of LENGTH by the plugin's code, held here
 * unload NAME               unloads it; its code and what its calls made stay held here
 * forget NAME               forgets both
 * </pre>
 */
abstract class PluginHost {
    private final Map<String, IntFunction<Object>> code = new HashMap<>();
    private final Map<String, List<Object>> held = new HashMap<>();

    /** Loads the plugin and makes an object of its code. */
    abstract IntFunction<Object> load(String name) throws Exception;

    /** Unloads the plugin. */
    void unload(String name) throws Exception {
        throw new UnsupportedOperationException(name);
    }

    final void serve() throws IOException {
        Layout.crossCheck();
        Protocol.serve(
                Map.of(
                        "load", words -> code.put(words[1], load(words[1])),
                        "call", this::call,
                        "unload", words -> unload(words[1]),
                        "forget", words -> forget(words[1])));
    }

    private void call(String[] words) {
        IntFunction<Object> plugin = code.get(words[1]);
        int length = Integer.parseInt(words[2]);
        Object[] slots = new Object[Integer.parseInt(words[3])];
        held.computeIfAbsent(words[1], absent -> new ArrayList<>()).add(slots);
        for (int i = 0; i < slots.length; i++) {
            slots[i] = plugin.apply(length);
        }
        HeldObjects tally = new HeldObjects();
        tally.add(new long[] {Layout.array(1, length)}, slots.length);
        Protocol.say(tally.line(words[1]));
    }

    private void forget(String name) {
        code.remove(name);
        held.remove(name);
    }

    /** An object of the plugin's class of this name. */
    @SuppressWarnings("unchecked")
    static IntFunction<Object> instance(Class<?> plugin) throws ReflectiveOperationException {
        return (IntFunction<Object>) plugin.getDeclaredConstructor().newInstance();
    }
}
