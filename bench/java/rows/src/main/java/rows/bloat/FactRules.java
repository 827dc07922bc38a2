package rows.bloat;

import static org.objectweb.asm.Opcodes.*;

import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.JumpInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.analysis.Analyzer;
import org.objectweb.asm.tree.analysis.AnalyzerException;
import org.objectweb.asm.tree.analysis.Frame;

/** Replaces sums of constants, branches that are decided, and casts that were made before. */
final class FactRules implements Optimiser.Pass {
    @Override
    public boolean rewrite(String owner, MethodNode method) throws AnalyzerException {
        Frame<Fact>[] frames = new Analyzer<>(new FactInterpreter()).analyze(owner, method);
        AbstractInsnNode[] instructions = method.instructions.toArray();
        boolean changed = false;
        for (int at = 0; at < instructions.length - 1; at++) {
            // Null is code that is never reached.
            if (frames[at] != null && instructions[at].getOpcode() >= 0) {
                changed |= rewrite(method, instructions[at], frames[at], frames[at + 1]);
            }
        }
        return changed;
    }

    private static boolean rewrite(
            MethodNode method, AbstractInsnNode instruction, Frame<Fact> before, Frame<Fact> after) {
        int opcode = instruction.getOpcode();
        if (opcode == CHECKCAST) {
            TypeInsnNode origin = top(before, 0).origin();
            // A frame between the two may know the value by a wider type.
            if (origin == null
                    || !origin.desc.equals(((TypeInsnNode) instruction).desc)
                    || !Code.straightLine(origin, instruction)) {
                return false;
            }
            Code.remove(method, instruction);
            return true;
        }
        if (opcode >= IADD && opcode <= IXOR) {
            return fold(method, instruction, before, after);
        }
        return instruction instanceof JumpInsnNode jump && decide(method, jump, before);
    }

    /** An operation of one or two ints, all known, becomes its result. */
    private static boolean fold(
            MethodNode method, AbstractInsnNode instruction, Frame<Fact> before, Frame<Fact> after) {
        boolean unary = instruction.getOpcode() == INEG;
        boolean known =
                top(before, 0).constant() != null && (unary || top(before, 1).constant() != null);
        if (!known || after == null || top(after, 0).constant() == null) {
            return false;
        }
        method.instructions.insertBefore(instruction, new InsnNode(unary ? POP : POP2));
        method.instructions.set(instruction, Code.push(top(after, 0).constant()));
        return true;
    }

    private static boolean decide(MethodNode method, JumpInsnNode jump, Frame<Fact> before) {
        Boolean taken = taken(jump.getOpcode(), before);
        if (taken == null) {
            return false;
        }
        boolean two = jump.getOpcode() >= IF_ICMPEQ && jump.getOpcode() <= IF_ICMPLE;
        InsnNode pop = new InsnNode(two ? POP2 : POP);
        if (!taken) {
            method.instructions.set(jump, pop);
            return true;
        }
        if (!Code.frameFollows(jump)) {
            // The code after a jump that is always taken must have a frame, and has none.
            return false;
        }
        method.instructions.insertBefore(jump, pop);
        method.instructions.set(jump, new JumpInsnNode(GOTO, jump.label));
        return true;
    }

    /** Whether the branch is taken, or null if that is open. */
    private static Boolean taken(int opcode, Frame<Fact> before) {
        if (opcode == IFNULL || opcode == IFNONNULL) {
            return top(before, 0).present() ? opcode == IFNONNULL : null;
        }
        if (opcode >= IFEQ && opcode <= IFLE) {
            Integer value = top(before, 0).constant();
            return value == null ? null : holds(opcode - IFEQ, value, 0);
        }
        if (opcode >= IF_ICMPEQ && opcode <= IF_ICMPLE) {
            Integer left = top(before, 1).constant();
            Integer right = top(before, 0).constant();
            return left == null || right == null ? null : holds(opcode - IF_ICMPEQ, left, right);
        }
        return null;
    }

    /** The comparisons in the order of the opcodes. */
    private static boolean holds(int comparison, int left, int right) {
        return switch (comparison) {
            case 0 -> left == right;
            case 1 -> left != right;
            case 2 -> left < right;
            case 3 -> left >= right;
            case 4 -> left > right;
            default -> left <= right;
        };
    }

    private static Fact top(Frame<Fact> frame, int below) {
        return frame.getStack(frame.getStackSize() - 1 - below);
    }
}
