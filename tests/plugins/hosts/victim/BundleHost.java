package victim;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.function.IntFunction;
import org.osgi.framework.Bundle;
import org.osgi.framework.Constants;
import org.osgi.framework.launch.Framework;
import org.osgi.framework.launch.FrameworkFactory;
import org.osgi.framework.wiring.FrameworkWiring;

/**
 * An OSGi framework in a program, whichever is on the class path. Bundle NAME is {@code org.example.NAME}; one that is
 * called {@code library} has no activator.
 */
public final class BundleHost extends PluginHost {
    private final Framework framework;
    private final Map<String, Bundle> bundles = new HashMap<>();
    private final String tenant;
    private final String guest;

    private BundleHost(Framework framework, String tenant, String guest) {
        this.framework = framework;
        this.tenant = tenant;
        this.guest = guest;
    }

    public static void main(String[] args) throws Exception {
        FrameworkFactory factory = ServiceLoader.load(FrameworkFactory.class).iterator().next();
        Map<String, String> settings = Map.of(Constants.FRAMEWORK_STORAGE, "storage");
        Framework framework = factory.newFramework(settings);
        framework.start();
        new BundleHost(framework, args[0], args[1]).serve();
        framework.stop();
        framework.waitForStop(0);
    }

    @Override
    IntFunction<Object> load(String name) throws Exception {
        Map<String, String> headers = new HashMap<>();
        headers.put("Bundle-ManifestVersion", "2");
        headers.put("Bundle-SymbolicName", "org.example." + name + ";singleton:=true");
        headers.put("Bundle-Version", "1.0.0");
        headers.put("Import-Package", "org.osgi.framework");
        if (!name.equals("library")) {
            headers.put("Bundle-Activator", "guest.Activator");
        }
        Path jar = PluginJar.make(Path.of(name + ".jar"), headers, Map.of(), tenant, guest);
        Bundle bundle = framework.getBundleContext().installBundle(jar.toUri().toString());
        bundle.start();
        bundles.put(name, bundle);
        return instance(bundle.loadClass("tenant.Tenant"));
    }

    @Override
    void unload(String name) throws Exception {
        bundles.remove(name).uninstall();
        framework.adapt(FrameworkWiring.class).refreshBundles(null);
    }
}
