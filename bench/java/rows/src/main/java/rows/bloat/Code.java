package rows.bloat;

import static org.objectweb.asm.Opcodes.*;

import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.FrameNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.IntInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodNode;

/** Small changes to a list of instructions. */
final class Code {
    private Code() {}

    /** The shortest instruction that pushes an int. */
    static AbstractInsnNode push(int value) {
        if (value >= -1 && value <= 5) {
            return new InsnNode(ICONST_0 + value);
        }
        if (value == (byte) value) {
            return new IntInsnNode(BIPUSH, value);
        }
        return value == (short) value ? new IntInsnNode(SIPUSH, value) : new LdcInsnNode(value);
    }

    /** Takes an instruction out. Where two frames would meet it leaves a NOP: no place has two. */
    static void remove(MethodNode method, AbstractInsnNode instruction) {
        if (framePrecedes(instruction) && frameFollows(instruction)) {
            method.instructions.set(instruction, new InsnNode(NOP));
        } else {
            method.instructions.remove(instruction);
        }
    }

    /** Whether control comes from one instruction to the other one way only, past no frame. */
    static boolean straightLine(AbstractInsnNode from, AbstractInsnNode to) {
        AbstractInsnNode at = to;
        while (at != null && at != from && !(at instanceof FrameNode)) {
            at = at.getPrevious();
        }
        return at == from;
    }

    private static boolean framePrecedes(AbstractInsnNode instruction) {
        AbstractInsnNode at = instruction.getPrevious();
        while (at != null && at.getOpcode() < 0) {
            if (at instanceof FrameNode) {
                return true;
            }
            at = at.getPrevious();
        }
        // The frame of the method's beginning is not written down, and none may stand beside it.
        return at == null;
    }

    /** Whether the compiler wrote a frame between this instruction and the next. */
    static boolean frameFollows(AbstractInsnNode instruction) {
        AbstractInsnNode at = instruction.getNext();
        while (at != null && at.getOpcode() < 0) {
            if (at instanceof FrameNode) {
                return true;
            }
            at = at.getNext();
        }
        return false;
    }
}
