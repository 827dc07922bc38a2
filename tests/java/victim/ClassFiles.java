package victim;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Stream;

/**
 * The class files of the JDK's own modules.
 *
 * <p>{@code dump FOLDER MODULE...} writes them below the folder, those of all modules if none is named;
 * {@code unpack FOLDER JARS} those of the jars in a folder; {@code verify FOLDER PLAIN} has the JDK's own
 * library for class files verify each below the folder and prints what it finds; a class of which it says
 * the same as of the one below PLAIN is not judged, nor from JDK 24 on an old one without a stack map. {@code compile CLASS_PATH INTO SOURCES...} compiles in this JVM and prints what {@code java.lang.RewriteMark} has counted.
 */
public final class ClassFiles {
    private ClassFiles() {}

    public static void main(String[] arguments) throws Exception {
        List<String> rest = List.of(arguments).subList(1, arguments.length);
        switch (arguments[0]) {
            case "dump" -> dump(Path.of(rest.get(0)), rest.subList(1, rest.size()));
            case "unpack" -> unpack(Path.of(rest.get(0)), Path.of(rest.get(1)));
            case "verify" -> verify(Path.of(rest.get(0)), Path.of(rest.get(1)));
            case "compile" -> compile(rest);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void dump(Path folder, List<String> modules) throws IOException {
        Path root = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules");
        List<String> wanted = modules;
        if (wanted.isEmpty()) {
            try (Stream<Path> all = Files.list(root)) {
                wanted = all.map(module -> module.getFileName().toString()).toList();
            }
        }
        for (String module : wanted) {
            Path from = root.resolve(module);
            try (Stream<Path> files = Files.walk(from)) {
                files.filter(ClassFiles::isClass).forEach(file -> {
                    Path to = folder.resolve(module).resolve(from.relativize(file).toString());
                    try {
                        Files.createDirectories(to.getParent());
                        Files.write(to, Files.readAllBytes(file));
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    }
                });
            }
        }
    }

    /** Class files below {@code META-INF} are of other releases. */
    private static void unpack(Path folder, Path jars) throws IOException {
        List<Path> all;
        try (Stream<Path> files = Files.list(jars)) {
            all = files.filter(file -> file.toString().endsWith(".jar")).toList();
        }
        for (Path jar : all) {
            Path below = folder.resolve(jar.getFileName().toString());
            try (JarFile file = new JarFile(jar.toFile())) {
                for (JarEntry entry : Collections.list(file.entries())) {
                    Path to = below.resolve(entry.getName()).normalize();
                    if (!isClass(to) || entry.getName().startsWith("META-INF/")) {
                        continue;
                    }
                    if (!to.startsWith(below)) {
                        throw new IOException(entry.getName());
                    }
                    Files.createDirectories(to.getParent());
                    try (InputStream bytes = file.getInputStream(entry)) {
                        Files.write(to, bytes.readAllBytes());
                    }
                }
            }
        }
    }

    private static boolean isClass(Path file) {
        String name = file.getFileName() == null ? "" : file.getFileName().toString();
        return name.endsWith(".class") && !name.equals("module-info.class");
    }

    /** Finds the errors in a class file: returns their descriptions, empty if there are none. */
    private interface Verifier {
        String errors(byte[] classFile) throws ReflectiveOperationException;
    }

    private static void verify(Path folder, Path plain) throws Exception {
        Verifier verifier = verifier();
        int judged = 0;
        int not = 0;
        int old = 0;
        var kinds = new TreeMap<String, Integer>();
        List<Path> all;
        try (Stream<Path> files = Files.walk(folder)) {
            all = files.filter(ClassFiles::isClass).toList();
        }
        for (Path file : all) {
            Path original = plain.resolve(folder.relativize(file).toString());
            String errors = errors(verifier, file);
            if (errors.isEmpty()) {
                judged++;
            } else if (errors.contains("Inference verification is not supported")) {
                old++;
            } else if (Files.exists(original) && errors.equals(errors(verifier, original))) {
                not++;
                String kind = errors.lines().findFirst().orElse("").replaceAll("[^ ]*[./][^ ]*", "*");
                kinds.merge(kind.substring(0, Math.min(kind.length(), 80)), 1, Integer::sum);
            } else {
                System.out.println("error in " + folder.relativize(file) + ": " + errors);
            }
        }
        System.out.println("judged " + judged);
        System.out.println("old " + old);
        System.out.println("not " + not);
        kinds.forEach((kind, count) -> System.out.println("  of which " + count + ": " + kind));
    }

    private static String errors(Verifier verifier, Path file) throws Exception {
        try {
            // At which instruction it was is another matter after insertions.
            return verifier.errors(Files.readAllBytes(file)).replaceAll("instruction \\d+", "one");
        } catch (InvocationTargetException e) {
            return e.getCause().toString();
        }
    }

    /** From JDK 24 on the public library, before it the copy of ASM that the JDK has inside. */
    private static Verifier verifier() throws ReflectiveOperationException {
        if (Runtime.version().feature() >= 24) {
            Class<?> library = Class.forName("java.lang.classfile.ClassFile");
            Object instance = library.getMethod("of", optionArray()).invoke(null, noOptions());
            Method verify = library.getMethod("verify", byte[].class);
            return bytes -> {
                List<?> errors = (List<?>) verify.invoke(instance, (Object) bytes);
                return errors.isEmpty() ? "" : errors.get(0).toString();
            };
        }
        String asm = "jdk.internal.org.objectweb.asm.";
        Class<?> reader = Class.forName(asm + "ClassReader");
        Method verify = Class.forName(asm + "util.CheckClassAdapter")
                .getMethod("verify", reader, ClassLoader.class, boolean.class, PrintWriter.class);
        var newReader = reader.getConstructor(byte[].class);
        return bytes -> {
            StringWriter errors = new StringWriter();
            PrintWriter writer = new PrintWriter(errors);
            ClassLoader loader = ClassLoader.getSystemClassLoader();
            verify.invoke(null, newReader.newInstance((Object) bytes), loader, false, writer);
            writer.flush();
            return errors.toString().lines().limit(3).toList().toString().replace("[]", "");
        };
    }

    private static Class<?> optionArray() throws ReflectiveOperationException {
        return Class.forName("java.lang.classfile.ClassFile$Option").arrayType();
    }

    private static Object noOptions() throws ReflectiveOperationException {
        return java.lang.reflect.Array.newInstance(optionArray().componentType(), 0);
    }

    private static void compile(List<String> arguments) throws Exception {
        var command = new java.util.ArrayList<String>(List.of("-cp", arguments.get(0), "-d"));
        command.addAll(arguments.subList(1, arguments.size()));
        int status = javax.tools.ToolProvider.getSystemJavaCompiler()
                .run(null, null, null, command.toArray(String[]::new));
        System.out.println("compiled with status " + status);
        try {
            Class<?> mark = Class.forName("java.lang.RewriteMark");
            System.out.println("marks " + mark.getField("marks").getLong(null));
            System.out.println("bracketed " + mark.getField("bracketed").getLong(null));
            System.out.println("left " + mark.getField("left").getLong(null));
            System.out.println("asked " + mark.getField("asked").getLong(null));
        } catch (ClassNotFoundException e) {
            System.out.println("plain");
        }
        try {
            var nodes = Class.forName("java.lang.HeapwardenContexts").getDeclaredField("nodesEnd");
            nodes.setAccessible(true);
            System.out.println("contexts " + nodes.getInt(null));
        } catch (ClassNotFoundException e) {
            System.out.println("no contexts");
        }
    }
}
