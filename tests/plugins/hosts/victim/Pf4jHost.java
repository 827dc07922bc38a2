package victim;

import java.nio.file.Path;
import java.util.Map;
import java.util.function.IntFunction;
import org.pf4j.DefaultPluginManager;
import org.pf4j.PluginManager;

/** A program with plugins of PF4J: NAME has the id {@code NAME-plugin}. */
public final class Pf4jHost extends PluginHost {
    private final PluginManager plugins = new DefaultPluginManager(Path.of("plugins"));
    private final String tenant;

    private Pf4jHost(String tenant) {
        this.tenant = tenant;
    }

    public static void main(String[] args) throws Exception {
        new Pf4jHost(args[0]).serve();
    }

    @Override
    IntFunction<Object> load(String name) throws Exception {
        String id = name + "-plugin";
        Map<String, String> headers = Map.of("Plugin-Id", id, "Plugin-Version", "1.0.0");
        Path jar = PluginJar.make(Path.of("plugins", name + ".jar"), headers, Map.of(), tenant);
        plugins.loadPlugin(jar);
        plugins.startPlugin(id);
        ClassLoader loader = plugins.getPlugin(id).getPluginClassLoader();
        return instance(loader.loadClass("tenant.Tenant"));
    }

    @Override
    void unload(String name) {
        plugins.unloadPlugin(name + "-plugin");
    }
}
