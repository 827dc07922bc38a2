package victim;

import java.lang.ref.WeakReference;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.lib.xml.Desk;

/**
 * A little server: deploys services in named class loaders and calls them as containers do.
 *
 * <pre>
 * deploy NAME              a fresh loader of that name with its own copy of tenant.Tenant
 * child NAME [DEPTH]       the service's calls go through an unnamed child loader from now on (as JSPs), or
 *                          through one with so many unnamed loaders above it that it is the DEPTH-th
 * call NAME CONTEXT LENGTH COUNT   COUNT arrays of LENGTH by the service's code, with its own context
 *                          loader (CONTEXT own), none (null), the system's (system) or NAME's
 * outside NAME LENGTH COUNT  the same arrays by code of nobody while NAME is the context loader
 * through NAME LENGTH COUNT  the same by a library's code (org.lib.xml) on its behalf
 * grow NAME LENGTH COUNT   as call NAME own, until refused; says "grown" or "refused"
 * undeploy NAME            forgets the loader; what its calls made stays held here
 * release NAME             forgets what NAME's calls made
 * loaders                  how many undeployed loaders still exist
 * swarm FROM COUNT LENGTH  COUNT services, each deployed, called once and forgotten
 * </pre>
 */
public final class ServiceHost {
    private static final Map<String, Service> DEPLOYED = new HashMap<>();
    private static final Map<String, List<Object>> HELD = new HashMap<>();
    private static final List<WeakReference<ClassLoader>> UNDEPLOYED = new ArrayList<>();
    private static URL[] tenantCode;

    private ServiceHost() {}

    private static final class Service {
        final ClassLoader loader;
        ClassLoader context;
        IntFunction<Object> code;

        Service(String name) throws ReflectiveOperationException {
            loader = new URLClassLoader(name, tenantCode, ServiceHost.class.getClassLoader());
            context = loader;
            code = load(loader);
        }

        void useChild(int depth) throws ReflectiveOperationException {
            ClassLoader parent = loader;
            for (int above = 1; above < depth; above++) {
                parent = new URLClassLoader(new URL[0], parent);
            }
            context = new OwnFirst(tenantCode, parent);
            code = load(context);
        }

        @SuppressWarnings("unchecked")
        private static IntFunction<Object> load(ClassLoader loader)
                throws ReflectiveOperationException {
            return (IntFunction<Object>)
                    Class.forName("tenant.Tenant", true, loader)
                            .getDeclaredConstructor()
                            .newInstance();
        }
    }

    /** A child loader that defines the tenant's class itself, as a JSP's loader defines the JSP. */
    private static final class OwnFirst extends URLClassLoader {
        OwnFirst(URL[] urls, ClassLoader parent) {
            super(urls, parent);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null) {
                    return known;
                }
                return name.startsWith("tenant.")
                        ? findClass(name)
                        : super.loadClass(name, resolve);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        setTenantCode(args[0]);
        Layout.crossCheck();
        IntFunction<Object> nobody = length -> new byte[length];
        nobody.apply(1);
        Protocol.serve(
                Map.of(
                        "deploy", words -> DEPLOYED.put(words[1], new Service(words[1])),
                        "child", words ->
                                DEPLOYED.get(words[1])
                                        .useChild(words.length > 2 ? Integer.parseInt(words[2]) : 1),
                        "call", ServiceHost::call,
                        "outside", words -> outside(words, nobody),
                        "through", words -> outside(words, throughLibrary()),
                        "grow", ServiceHost::grow,
                        "undeploy", words -> undeploy(words[1]),
                        "release", words -> HELD.remove(words[1]),
                        "loaders", words -> countLoaders(),
                        "swarm", ServiceHost::swarm));
    }

    private static void setTenantCode(String directory) throws MalformedURLException {
        tenantCode = new URL[] {Path.of(directory).toUri().toURL()};
    }

    private static void call(String[] words) {
        Service service = DEPLOYED.get(words[1]);
        hold(words[1], context(words[2], service), service.code, words, 3);
    }

    private static ClassLoader context(String word, Service service) {
        switch (word) {
            case "own":
                return service.context;
            case "null":
                return null;
            case "system":
                return ClassLoader.getSystemClassLoader();
            default:
                return DEPLOYED.get(word).context;
        }
    }

    private static void outside(String[] words, IntFunction<Object> nobody) {
        hold(words[1], DEPLOYED.get(words[1]).context, nobody, words, 2);
    }

    /** Code that allocates below a frame of the library. */
    private static IntFunction<Object> throughLibrary() {
        Desk desk = new Desk();
        return length -> {
            Object[] made = new Object[1];
            desk.run(() -> made[0] = new byte[length]);
            return made[0];
        };
    }

    private static void grow(String[] words) {
        Service service = DEPLOYED.get(words[1]);
        try {
            hold(words[1], service.context, service.code, words, 2);
            Protocol.say("grown");
        } catch (RuntimeException | OutOfMemoryError refused) {
            Protocol.say("refused " + refused.getClass().getName());
        }
    }

    private static void hold(
            String name, ClassLoader context, IntFunction<Object> code, String[] words, int at) {
        int length = Integer.parseInt(words[at]);
        Object[] slots = new Object[Integer.parseInt(words[at + 1])];
        HELD.computeIfAbsent(name, absent -> new ArrayList<>()).add(slots);
        fill(slots, context, code, length);
        HeldObjects tally = new HeldObjects();
        tally.add(new long[] {Layout.array(1, length)}, slots.length);
        Protocol.say(tally.line(name));
    }

    /** Allocates nothing but the items while the context loader is set. */
    private static void fill(
            Object[] slots, ClassLoader context, IntFunction<Object> code, int length) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(context);
        try {
            for (int i = 0; i < slots.length; i++) {
                slots[i] = code.apply(length);
            }
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static void undeploy(String name) {
        UNDEPLOYED.add(new WeakReference<>(DEPLOYED.remove(name).loader));
    }

    private static void countLoaders() {
        long alive = UNDEPLOYED.stream().filter(reference -> reference.get() != null).count();
        Protocol.say("loaders " + alive + " of " + UNDEPLOYED.size());
    }

    private static void swarm(String[] words) {
        int from = Integer.parseInt(words[1]);
        int count = Integer.parseInt(words[2]);
        int length = Integer.parseInt(words[3]);
        Object[] slot = new Object[1];
        for (int i = from; i < from + count; i++) {
            ClassLoader loader =
                    new URLClassLoader("swarm-" + i, new URL[0], ServiceHost.class.getClassLoader());
            fill(slot, loader, n -> new byte[n], length);
        }
    }
}
