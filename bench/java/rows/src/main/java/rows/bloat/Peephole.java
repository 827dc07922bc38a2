package rows.bloat;

import static org.objectweb.asm.Opcodes.*;

import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.IincInsnNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.JumpInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.VarInsnNode;

/** Rewrites instructions that stand side by side. */
final class Peephole implements Optimiser.Pass {
    /** Jumps to jumps that are followed at once; endless loops are made of them too. */
    private static final int MAX_HOPS = 8;

    @Override
    public boolean rewrite(String owner, MethodNode method) {
        boolean changed = false;
        AbstractInsnNode at = method.instructions.getFirst();
        while (at != null) {
            if (at instanceof JumpInsnNode jump) {
                changed |= thread(jump);
            }
            AbstractInsnNode next = at.getNext();
            if (next == null) {
                break;
            }
            AbstractInsnNode before = at.getPrevious();
            if (pair(method, at, next)) {
                changed = true;
                // The instruction before may make a pair with the one that stands here now.
                at = before != null ? before : method.instructions.getFirst();
            } else {
                at = next;
            }
        }
        return changed;
    }

    /** A jump to a jump goes to where that one goes. */
    private static boolean thread(JumpInsnNode jump) {
        boolean changed = false;
        for (int hop = 0; hop < MAX_HOPS; hop++) {
            AbstractInsnNode target = jump.label;
            while (target != null && target.getOpcode() < 0) {
                target = target.getNext();
            }
            if (!(target instanceof JumpInsnNode second)
                    || second.getOpcode() != GOTO
                    || second.label == jump.label) {
                break;
            }
            jump.label = second.label;
            changed = true;
        }
        return changed;
    }

    private static boolean pair(MethodNode method, AbstractInsnNode first, AbstractInsnNode second) {
        if (second.getOpcode() == POP && pushesOnly(first)) {
            return removeBoth(method, first, second);
        }
        if (second.getOpcode() == POP2 && twoPushes(first)) {
            Code.remove(method, first.getPrevious());
            return removeBoth(method, first, second);
        }
        if (first instanceof VarInsnNode from && second instanceof VarInsnNode to) {
            return locals(method, from, to);
        }
        Integer constant = FactInterpreter.constant(first);
        return constant != null
                && (arithmetic(method, first, second, constant)
                        || increment(method, first, second, constant));
    }

    /** Whether it does nothing but push one value of one slot. */
    private static boolean pushesOnly(AbstractInsnNode instruction) {
        int opcode = instruction.getOpcode();
        if (instruction instanceof LdcInsnNode loaded) {
            // A class that is loaded by a constant may have to be found first.
            return loaded.cst instanceof Integer
                    || loaded.cst instanceof Float
                    || loaded.cst instanceof String;
        }
        return opcode == ILOAD
                || opcode == FLOAD
                || opcode == ALOAD
                || opcode == DUP
                || opcode == ACONST_NULL
                || FactInterpreter.constant(instruction) != null;
    }

    private static boolean twoPushes(AbstractInsnNode last) {
        return pushesOnly(last) && last.getPrevious() != null && pushesOnly(last.getPrevious());
    }

    private static boolean removeBoth(
            MethodNode method, AbstractInsnNode first, AbstractInsnNode second) {
        method.instructions.remove(first);
        Code.remove(method, second);
        return true;
    }

    private static boolean locals(MethodNode method, VarInsnNode from, VarInsnNode to) {
        if (from.var != to.var) {
            return false;
        }
        int opcode = from.getOpcode();
        if (opcode >= ILOAD && opcode <= ALOAD && to.getOpcode() == opcode + (ISTORE - ILOAD)) {
            return removeBoth(method, from, to);
        }
        boolean narrow = opcode == ISTORE || opcode == FSTORE || opcode == ASTORE;
        if (narrow && to.getOpcode() == opcode - (ISTORE - ILOAD)) {
            method.instructions.insertBefore(from, new InsnNode(DUP));
            method.instructions.remove(to);
            return true;
        }
        return false;
    }

    private static boolean arithmetic(
            MethodNode method, AbstractInsnNode push, AbstractInsnNode operation, int constant) {
        boolean neutral =
                switch (operation.getOpcode()) {
                    case IADD, ISUB, IOR, IXOR, ISHL, ISHR, IUSHR -> constant == 0;
                    case IMUL, IDIV -> constant == 1;
                    case IAND -> constant == -1;
                    default -> false;
                };
        if (neutral) {
            return removeBoth(method, push, operation);
        }
        if (operation.getOpcode() == IMUL && constant > 1 && Integer.bitCount(constant) == 1) {
            method.instructions.set(push, Code.push(Integer.numberOfTrailingZeros(constant)));
            method.instructions.set(operation, new InsnNode(ISHL));
            return true;
        }
        return false;
    }

    /** A local that is loaded, added to and stored is incremented. */
    private static boolean increment(
            MethodNode method, AbstractInsnNode push, AbstractInsnNode operation, int constant) {
        int opcode = operation.getOpcode();
        int step = opcode == ISUB ? -constant : constant;
        if (opcode != IADD && opcode != ISUB
                || step != (short) step
                || !(push.getPrevious() instanceof VarInsnNode load)
                || !(operation.getNext() instanceof VarInsnNode store)
                || load.getOpcode() != ILOAD
                || store.getOpcode() != ISTORE
                || load.var != store.var) {
            return false;
        }
        method.instructions.set(store, new IincInsnNode(load.var, step));
        method.instructions.remove(load);
        method.instructions.remove(push);
        method.instructions.remove(operation);
        return true;
    }
}
