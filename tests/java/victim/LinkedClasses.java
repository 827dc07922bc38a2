package victim;

import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Loads and links classes, which has them verified, and initialises none.
 *
 * <pre>
 * link FOLDER    every class of the jars there: {@code no CLASS ERROR} for one that cannot be, and
 *                {@code linked COUNT of COUNT}
 * modules NAME   the same of every class of the JDK's module, or of all modules: {@code ALL}
 * </pre>
 */
public final class LinkedClasses {
    private LinkedClasses() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(
                Map.of(
                        "link", words -> link(Path.of(words[1])),
                        "modules", words -> modules(words[1])));
    }

    private static void modules(String wanted) throws IOException {
        Path root = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules");
        int linked = 0;
        int all = 0;
        List<Module> modules =
                ModuleLayer.boot().modules().stream()
                        .filter(module -> wanted.equals("ALL") || wanted.equals(module.getName()))
                        .filter(module -> Files.exists(root.resolve(module.getName())))
                        .sorted(Comparator.comparing(Module::getName))
                        .collect(Collectors.toList());
        for (Module module : modules) {
            Path from = root.resolve(module.getName());
            List<String> names;
            try (Stream<Path> files = Files.walk(from)) {
                names =
                        files.map(file -> from.relativize(file).toString())
                                .filter(LinkedClasses::isClass)
                                .map(LinkedClasses::named)
                                .sorted()
                                .collect(Collectors.toList());
            }
            all += names.size();
            for (String name : names) {
                if (isLinked(name, () -> Class.forName(module, name))) {
                    linked++;
                }
            }
        }
        Protocol.say("linked " + linked + " of " + all);
    }

    /** Loads a class and initialises it not. */
    private interface Loading {
        Class<?> load() throws ClassNotFoundException;
    }

    private static boolean isLinked(String name, Loading loading) {
        try {
            Class<?> loaded = loading.load();
            if (loaded == null) {
                Protocol.say("no " + name);
                return false;
            }
            // The VM links a class before it tells its methods.
            loaded.getDeclaredMethods();
            return true;
        } catch (Throwable failure) {
            Protocol.say("no " + name + " " + failure.getClass().getName());
            return false;
        }
    }

    private static void link(Path folder) throws Exception {
        List<Path> jars;
        try (Stream<Path> files = Files.list(folder)) {
            jars =
                    files.filter(file -> file.toString().endsWith(".jar"))
                            .sorted()
                            .collect(Collectors.toList());
        }
        List<URL> urls = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (Path jar : jars) {
            urls.add(jar.toUri().toURL());
            try (JarFile file = new JarFile(jar.toFile())) {
                file.stream()
                        .map(entry -> entry.getName())
                        .filter(LinkedClasses::isClass)
                        .map(LinkedClasses::named)
                        .forEach(names::add);
            }
        }
        int linked = 0;
        try (URLClassLoader loader =
                new URLClassLoader(
                        urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
            for (String name : names) {
                if (isLinked(name, () -> Class.forName(name, false, loader))) {
                    linked++;
                }
            }
        }
        Protocol.say("linked " + linked + " of " + names.size());
    }

    private static String named(String file) {
        return file.substring(0, file.length() - 6).replace('/', '.');
    }

    private static boolean isClass(String name) {
        return name.endsWith(".class")
                && !name.startsWith("META-INF/")
                && !name.endsWith("module-info.class");
    }
}
