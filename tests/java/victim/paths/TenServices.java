package victim.paths;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import victim.Protocol;

/** Ten services, each in a class loader of its own; {@code s9} is small. Some of what it makes is held here. */
public final class TenServices {
    static final List<Object> HELD_OUTSIDE = new ArrayList<>();
    private static final int SERVICES = 10;
    private static final Map<String, BiFunction<String, Integer, Object>> DEPLOYED =
            new TreeMap<>();

    private TenServices() {}

    public static void main(String[] arguments) throws Exception {
        for (int number = 0; number < SERVICES; number++) {
            deploy("s" + number);
        }
        Protocol.serve(
                Map.of(
                        "hold", words -> hold(Integer.parseInt(words[1])),
                        "begin", words -> all("begin"),
                        "end", words -> all("end")));
    }

    @SuppressWarnings("unchecked")
    private static void deploy(String name) throws Exception {
        URL own = TenServices.class.getProtectionDomain().getCodeSource().getLocation();
        ClassLoader platform = ClassLoader.getPlatformClassLoader();
        ClassLoader loader = new URLClassLoader(name, new URL[] {own}, platform);
        Object made = loader.loadClass("victim.paths.service.Shop").getConstructor().newInstance();
        DEPLOYED.put(name, (BiFunction<String, Integer, Object>) made);
    }

    private static void hold(int count) {
        for (String name : DEPLOYED.keySet()) {
            ask(name, "hold", name.equals("s9") ? 1000 : count);
            ask(name, "pool", 1000);
        }
        HELD_OUTSIDE.add(ask("s9", "give", 1000));
    }

    private static void all(String order) {
        for (String name : DEPLOYED.keySet()) {
            ask(name, order, 0);
        }
    }

    private static Object ask(String name, String order, int count) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        BiFunction<String, Integer, Object> service = DEPLOYED.get(name);
        thread.setContextClassLoader(service.getClass().getClassLoader());
        try {
            return service.apply(order, count);
        } finally {
            thread.setContextClassLoader(before);
        }
    }
}
