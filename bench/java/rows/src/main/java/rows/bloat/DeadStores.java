package rows.bloat;

import static org.objectweb.asm.Opcodes.*;

import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.FrameNode;
import org.objectweb.asm.tree.IincInsnNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.VarInsnNode;
import org.objectweb.asm.tree.analysis.Analyzer;
import org.objectweb.asm.tree.analysis.AnalyzerException;
import org.objectweb.asm.tree.analysis.Frame;
import org.objectweb.asm.tree.analysis.SourceInterpreter;
import org.objectweb.asm.tree.analysis.SourceValue;

/** Throws a value away at once that is stored where nobody reads it. */
final class DeadStores implements Optimiser.Pass {
    @Override
    public boolean rewrite(String owner, MethodNode method) throws AnalyzerException {
        Frame<SourceValue>[] frames = new Analyzer<>(new SourceInterpreter()).analyze(owner, method);
        AbstractInsnNode[] instructions = method.instructions.toArray();
        Set<AbstractInsnNode> read = new HashSet<>();
        for (int at = 0; at < instructions.length; at++) {
            int local = read(instructions[at]);
            if (local >= 0 && frames[at] != null) {
                read.addAll(frames[at].getLocal(local).insns);
            }
        }
        BitSet kept = inFrames(method);
        boolean changed = false;
        for (AbstractInsnNode instruction : instructions) {
            int opcode = instruction.getOpcode();
            if (opcode < ISTORE || opcode > ASTORE || read.contains(instruction)) {
                continue;
            }
            boolean wide = opcode == LSTORE || opcode == DSTORE;
            // Frames that tell of the local would no longer be true.
            if (!kept.get(((VarInsnNode) instruction).var)) {
                method.instructions.set(instruction, new InsnNode(wide ? POP2 : POP));
                changed = true;
            }
        }
        return changed;
    }

    /** The local that an instruction reads, or -1. */
    private static int read(AbstractInsnNode instruction) {
        if (instruction instanceof IincInsnNode increment) {
            return increment.var;
        }
        return instruction instanceof VarInsnNode access && access.getOpcode() <= ALOAD
                ? access.var
                : -1;
    }

    /** Locals that some frame knows. */
    private static BitSet inFrames(MethodNode method) {
        BitSet known = new BitSet();
        for (AbstractInsnNode instruction : method.instructions) {
            if (!(instruction instanceof FrameNode frame)) {
                continue;
            }
            int slot = 0;
            for (Object type : frame.local) {
                if (!type.equals(TOP)) {
                    known.set(slot);
                }
                slot += type.equals(LONG) || type.equals(DOUBLE) ? 2 : 1;
            }
        }
        return known;
    }
}
