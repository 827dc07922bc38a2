package victim;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
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
 * </pre>
 */
public final class LinkedClasses {
    private LinkedClasses() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(Map.of("link", words -> link(Path.of(words[1]))));
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
                        .map(name -> name.substring(0, name.length() - 6).replace('/', '.'))
                        .forEach(names::add);
            }
        }
        int linked = 0;
        try (URLClassLoader loader =
                new URLClassLoader(
                        urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
            for (String name : names) {
                try {
                    // The VM links a class before it tells its methods.
                    Class.forName(name, false, loader).getDeclaredMethods();
                    linked++;
                } catch (Throwable failure) {
                    Protocol.say("no " + name + " " + failure.getClass().getName());
                }
            }
        }
        Protocol.say("linked " + linked + " of " + names.size());
    }

    private static boolean isClass(String name) {
        return name.endsWith(".class")
                && !name.startsWith("META-INF/")
                && !name.endsWith("module-info.class");
    }
}
