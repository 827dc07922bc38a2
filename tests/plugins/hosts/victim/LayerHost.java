package victim;

import java.lang.module.Configuration;
import java.lang.module.ModuleFinder;
import java.nio.file.Path;
import java.util.Set;
import java.util.function.IntFunction;

/** A program with module layers: one class loader for each layer ("one") or for each module ("many"). */
public final class LayerHost extends PluginHost {
    private final Path modules;
    private final boolean many;

    private LayerHost(Path modules, boolean many) {
        this.modules = modules;
        this.many = many;
    }

    public static void main(String[] args) throws Exception {
        new LayerHost(Path.of(args[0]), args[1].equals("many")).serve();
    }

    @Override
    IntFunction<Object> load(String name) throws Exception {
        return load(modules, many, LayerHost.class.getClassLoader(), name);
    }

    /** An object of the code of the module {@code plug.NAME}, in a layer of its own below a class loader. */
    static IntFunction<Object> load(Path modules, boolean many, ClassLoader parent, String name)
            throws Exception {
        String root = "plug." + name;
        ModuleLayer boot = ModuleLayer.boot();
        Configuration configuration =
                boot.configuration()
                        .resolve(ModuleFinder.of(modules), ModuleFinder.of(), Set.of(root));
        ModuleLayer layer =
                many
                        ? boot.defineModulesWithManyLoaders(configuration, parent)
                        : boot.defineModulesWithOneLoader(configuration, parent);
        return instance(layer.findLoader(root).loadClass(name + ".Work"));
    }
}
