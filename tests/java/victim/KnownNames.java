package victim;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Says which names of the JDK's code this JDK knows, of those in a file, one a line: a package
 * ({@code a.b}), it and all below ({@code a.b.*}), a class ({@code a.b.C$D}) or a method ({@code
 * a.b.C#m}, of any signature).
 */
public final class KnownNames {
    private KnownNames() {}

    public static void main(String[] args) throws IOException {
        Set<String> packages =
                ModuleLayer.boot().modules().stream()
                        .flatMap(module -> module.getPackages().stream())
                        .collect(Collectors.toSet());
        for (String name : Files.readAllLines(Path.of(args[0]))) {
            if (isKnown(name, packages)) {
                System.out.println("known " + name);
            }
        }
    }

    private static boolean isKnown(String name, Set<String> packages) {
        if (packages.contains(name)) {
            return true;
        }
        if (name.endsWith(".*")) {
            String prefix = name.substring(0, name.length() - 2);
            return packages.stream().anyMatch(p -> p.equals(prefix) || p.startsWith(prefix + "."));
        }
        int method = name.indexOf('#');
        String type = method < 0 ? name : name.substring(0, method);
        try {
            Class<?> found = Class.forName(type, false, ClassLoader.getSystemClassLoader());
            String wanted = name.substring(method + 1);
            return method < 0
                    || Stream.of(found.getDeclaredMethods())
                            .anyMatch(declared -> declared.getName().equals(wanted));
        } catch (ClassNotFoundException e) {
            return false;
        }
    }
}
