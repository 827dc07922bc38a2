package victim.stress;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.StringWriter;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;
import java.util.function.LongUnaryOperator;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles generated sources in this process, and answers what the classes compute. */
public final class Compiling implements LongFunction<String> {
    @Override
    public String apply(long seed) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter messages = new StringWriter();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            Outputs outputs = new Outputs(files);
            boolean compiled =
                    compiler.getTask(
                                    messages,
                                    outputs,
                                    null,
                                    List.of("-proc:none", "-Xlint:all"),
                                    null,
                                    List.of(new Source(seed)))
                            .call();
            if (!compiled) {
                throw new IllegalStateException("not compiled: " + messages);
            }
            LongUnaryOperator made =
                    (LongUnaryOperator)
                            outputs.load("generated.Made").getDeclaredConstructor().newInstance();
            return messages + " " + made.applyAsLong(seed);
        } catch (java.io.IOException | ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(long seed) {
            super(URI.create("string:///generated/Made.java"), Kind.SOURCE);
            StringBuilder methods = new StringBuilder();
            for (int i = 0; i < 12; i++) {
                methods.append(
                        ("    static <T extends Comparable<T>> long m# (List<T> values, long x) {\n"
                                        + "        record Pair(long left, String right) {}\n"
                                        + "        var pair = new Pair(x * % + #, \"p\" + x + '-' + #);\n"
                                        + "        long sum = switch ((int) (x % 4)) {\n"
                                        + "            case 0 -> pair.left();\n"
                                        + "            case 1 -> values.stream().filter(v -> v != null)"
                                        + ".map(T::toString).mapToInt(String::length).sum();\n"
                                        + "            default -> { long s = 1; for (int i = 0; i < #;"
                                        + " i++) s = s * 31 + i; yield s; }\n"
                                        + "        };\n"
                                        + "        Function<Long, Long> f = y -> y + pair.right().length();\n"
                                        + "        return f.andThen(z -> z ^ #L).apply(sum);\n"
                                        + "    }\n")
                                .replace("* % +", "* " + (seed % 97 + 3) + " +")
                                .replace("#", Integer.toString(i)));
            }
            text =
                    "package generated;\n"
                            + "import java.util.*;\nimport java.util.function.*;\n"
                            + "public final class Made implements LongUnaryOperator {\n"
                            + "    enum Kind { A, B, C { @Override int of() { return 3; } };"
                            + " int of() { return ordinal(); } }\n"
                            + methods
                            + "    @Override public long applyAsLong(long x) {\n"
                            + "        long all = 0;\n"
                            + "        for (Kind kind : Kind.values()) all += kind.of();\n"
                            + calls()
                            + "        return all;\n    }\n}\n";
        }

        private static String calls() {
            StringBuilder calls = new StringBuilder();
            for (int i = 0; i < 12; i++) {
                calls.append("        all = all * 17 + m" + i + "(List.of(\"a\", \"bc\"), x + ")
                        .append(i + ");\n");
            }
            return calls.toString();
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }

    /** Keeps the classes in memory. */
    private static final class Outputs extends ForwardingJavaFileManager<StandardJavaFileManager> {
        private final Map<String, ByteArrayOutputStream> made = new HashMap<>();

        Outputs(StandardJavaFileManager files) {
            super(files);
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                JavaFileManager.Location location,
                String name,
                JavaFileObject.Kind kind,
                javax.tools.FileObject sibling) {
            return new SimpleJavaFileObject(
                    URI.create("bytes:///" + name.replace('.', '/') + kind.extension), kind) {
                @Override
                public OutputStream openOutputStream() {
                    return made.computeIfAbsent(name, absent -> new ByteArrayOutputStream());
                }
            };
        }

        Class<?> load(String name) throws ClassNotFoundException {
            Map<String, ByteArrayOutputStream> classes = made;
            return new ClassLoader(Compiling.class.getClassLoader()) {
                @Override
                protected Class<?> findClass(String wanted) throws ClassNotFoundException {
                    ByteArrayOutputStream code = classes.get(wanted);
                    if (code == null) {
                        throw new ClassNotFoundException(wanted);
                    }
                    return defineClass(wanted, code.toByteArray(), 0, code.size());
                }
            }.loadClass(name);
        }
    }
}
