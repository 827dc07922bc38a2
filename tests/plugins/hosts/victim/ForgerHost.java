package victim;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.function.IntFunction;

/**
 * A service {@code svc-a} whose code is not only in its own loader: {@code red} is in a loader that poses as one of PF4J,
 * any other in a module layer below the service's loader.
 */
public final class ForgerHost extends PluginHost {
    private final Path tenant;
    private final Path modules;
    private final ClassLoader service;

    private ForgerHost(Path forger, Path tenant, Path modules) throws Exception {
        this.tenant = tenant;
        this.modules = modules;
        service =
                new URLClassLoader(
                        "svc-a",
                        new URL[] {forger.toUri().toURL()},
                        ForgerHost.class.getClassLoader());
    }

    public static void main(String[] args) throws Exception {
        new ForgerHost(Path.of(args[0]), Path.of(args[1]), Path.of(args[2])).serve();
    }

    @Override
    IntFunction<Object> load(String name) throws Exception {
        if (!name.equals("red")) {
            return LayerHost.load(modules, true, service, name);
        }
        ClassLoader forged =
                (ClassLoader)
                        service.loadClass("org.pf4j.PluginClassLoader")
                                .getDeclaredConstructor(URL[].class, ClassLoader.class)
                                .newInstance(new URL[] {tenant.toUri().toURL()}, service);
        return instance(forged.loadClass("tenant.Tenant"));
    }
}
