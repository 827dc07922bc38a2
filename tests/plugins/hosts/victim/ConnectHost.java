package victim;

import java.nio.file.Path;
import java.util.Map;
import java.util.function.IntFunction;
import org.apache.kafka.connect.runtime.isolation.Plugins;

/**
 * Loads plugins as a worker of Kafka Connect does, without a broker: {@code red} is the folder {@code acme-red-1.2.0},
 * any other the jar {@code NAME-2.0.jar}.
 */
public final class ConnectHost extends PluginHost {
    private final String tenant;
    private final String guest;

    private ConnectHost(String tenant, String guest) {
        this.tenant = tenant;
        this.guest = guest;
    }

    public static void main(String[] args) throws Exception {
        new ConnectHost(args[0], args[1]).serve();
    }

    @Override
    IntFunction<Object> load(String name) throws Exception {
        Path plugins = Path.of("plugins-" + name).toAbsolutePath();
        Path jar =
                plugins.resolve(
                        name.equals("red") ? "acme-red-1.2.0/red.jar" : name + "-2.0.jar");
        String service = "META-INF/services/org.apache.kafka.connect.source.SourceConnector";
        PluginJar.make(jar, Map.of(), Map.of(service, "guest.Source"), tenant, guest);
        Map<String, String> settings =
                Map.of("plugin.path", plugins.toString(), "plugin.discovery", "service_load");
        ClassLoader loader = new Plugins(settings).connectorLoader("guest.Source");
        return instance(loader.loadClass("tenant.Tenant"));
    }
}
