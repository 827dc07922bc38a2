package rows.eclipse;

import java.io.PrintWriter;
import java.util.SortedMap;
import java.util.TreeMap;
import org.eclipse.jdt.internal.compiler.ClassFile;
import org.eclipse.jdt.internal.compiler.CompilationResult;
import org.eclipse.jdt.internal.compiler.batch.CompilationUnit;
import org.eclipse.jdt.internal.compiler.batch.Main;

/** The batch compiler, which neither reads sources from files nor writes classes to them. */
final class InMemoryCompiler extends Main {
    private final SortedMap<String, byte[]> classes = new TreeMap<>();

    private final SortedMap<String, String> sources;

    /** Its complaints go to {@code messages}. */
    InMemoryCompiler(SortedMap<String, String> sources, PrintWriter messages) {
        super(messages, messages, false, null, null);
        this.sources = sources;
    }

    /** The class files by their paths. */
    SortedMap<String, byte[]> classes() {
        return classes;
    }

    @Override
    public CompilationUnit[] getCompilationUnits() {
        return sources.entrySet().stream()
                .map(
                        source ->
                                new CompilationUnit(
                                        source.getValue().toCharArray(), source.getKey(), "UTF-8"))
                .toArray(CompilationUnit[]::new);
    }

    @Override
    public void outputClassFiles(CompilationResult result) {
        if (result == null || result.hasErrors()) {
            return;
        }
        for (ClassFile file : result.getClassFiles()) {
            classes.put(new String(file.fileName()), file.getBytes());
        }
    }
}
