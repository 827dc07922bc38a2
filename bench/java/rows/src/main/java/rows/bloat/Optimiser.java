package rows.bloat;

import java.util.List;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.analysis.Analyzer;
import org.objectweb.asm.tree.analysis.AnalyzerException;
import org.objectweb.asm.tree.analysis.BasicVerifier;

/**
 * Optimises a class. Every rule keeps the types in locals and on the stack at the targets of jumps as
 * they are, so that the frames the compiler wrote down stay true.
 */
final class Optimiser {
    /** One rewriting can allow another; few methods need more rounds than this. */
    private static final int MAX_ROUNDS = 4;

    private static final List<Pass> PASSES =
            List.of(new FactRules(), new DeadStores(), new Peephole());

    private Optimiser() {}

    /** A way to rewrite a method. */
    interface Pass {
        /**
         * Rewrites what it can.
         *
         * @param owner internal name of the class
         * @return whether anything was changed
         */
        boolean rewrite(String owner, MethodNode method) throws AnalyzerException;
    }

    /**
     * The class file after all passes.
     *
     * @throws AnalyzerException when the class, or what became of it, is no valid code
     */
    static byte[] optimise(byte[] original) throws AnalyzerException {
        ClassNode node = new ClassNode();
        new ClassReader(original).accept(node, ClassReader.EXPAND_FRAMES);
        for (MethodNode method : node.methods) {
            if (method.instructions.size() == 0) {
                continue;
            }
            verify(node.name, method);
            for (int round = 0; round < MAX_ROUNDS && rewrite(node.name, method); round++) {
                // Until nothing changes.
            }
        }
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        node.accept(writer);
        byte[] optimised = writer.toByteArray();
        ClassNode outcome = new ClassNode();
        new ClassReader(optimised).accept(outcome, ClassReader.SKIP_FRAMES);
        for (MethodNode method : outcome.methods) {
            verify(outcome.name, method);
        }
        return optimised;
    }

    private static boolean rewrite(String owner, MethodNode method) throws AnalyzerException {
        boolean changed = false;
        for (Pass pass : PASSES) {
            changed |= pass.rewrite(owner, method);
        }
        return changed;
    }

    private static void verify(String owner, MethodNode method) throws AnalyzerException {
        new Analyzer<>(new BasicVerifier()).analyze(owner, method);
    }
}
