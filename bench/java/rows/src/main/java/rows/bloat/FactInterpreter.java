package rows.bloat;

import static org.objectweb.asm.Opcodes.*;

import java.util.List;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.IincInsnNode;
import org.objectweb.asm.tree.IntInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.analysis.AnalyzerException;
import org.objectweb.asm.tree.analysis.BasicInterpreter;
import org.objectweb.asm.tree.analysis.BasicValue;
import org.objectweb.asm.tree.analysis.Interpreter;

/** Follows constant ints, references that cannot be null, and casts through a method. */
final class FactInterpreter extends Interpreter<Fact> {
    private final BasicInterpreter basic = new BasicInterpreter();

    FactInterpreter() {
        super(Opcodes.ASM9);
    }

    @Override
    public Fact newValue(Type type) {
        return Fact.of(basic.newValue(type));
    }

    @Override
    public Fact newParameterValue(boolean isInstanceMethod, int local, Type type) {
        boolean self = isInstanceMethod && local == 0;
        return self ? Fact.reference(true, null) : newValue(type);
    }

    @Override
    public Fact newOperation(AbstractInsnNode instruction) throws AnalyzerException {
        Integer constant = constant(instruction);
        if (constant != null) {
            return Fact.number(constant);
        }
        if (instruction instanceof TypeInsnNode made && made.getOpcode() == NEW) {
            return Fact.reference(true, made);
        }
        if (instruction instanceof LdcInsnNode loaded && loaded.cst instanceof String) {
            return Fact.reference(true, null);
        }
        return Fact.of(basic.newOperation(instruction));
    }

    /** The int that an instruction pushes, or null. */
    static Integer constant(AbstractInsnNode instruction) {
        int opcode = instruction.getOpcode();
        if (opcode >= ICONST_M1 && opcode <= ICONST_5) {
            return opcode - ICONST_0;
        }
        if (opcode == BIPUSH || opcode == SIPUSH) {
            return ((IntInsnNode) instruction).operand;
        }
        return instruction instanceof LdcInsnNode loaded && loaded.cst instanceof Integer number
                ? number
                : null;
    }

    @Override
    public Fact copyOperation(AbstractInsnNode instruction, Fact value) {
        return value;
    }

    @Override
    public Fact unaryOperation(AbstractInsnNode instruction, Fact value) throws AnalyzerException {
        if (instruction instanceof TypeInsnNode cast && cast.getOpcode() == CHECKCAST) {
            return Fact.reference(value.present(), cast);
        }
        BasicValue result = basic.unaryOperation(instruction, value.basic());
        if (value.constant() != null) {
            Integer number = unary(instruction, value.constant());
            if (number != null) {
                return Fact.number(number);
            }
        }
        int opcode = instruction.getOpcode();
        return opcode == NEWARRAY || opcode == ANEWARRAY
                ? Fact.reference(true, null)
                : Fact.of(result);
    }

    private static Integer unary(AbstractInsnNode instruction, int value) {
        return switch (instruction.getOpcode()) {
            case INEG -> -value;
            case IINC -> value + ((IincInsnNode) instruction).incr;
            case I2B -> (int) (byte) value;
            case I2C -> (int) (char) value;
            case I2S -> (int) (short) value;
            default -> null;
        };
    }

    @Override
    public Fact binaryOperation(AbstractInsnNode instruction, Fact left, Fact right)
            throws AnalyzerException {
        if (left.constant() != null && right.constant() != null) {
            Integer number = binary(instruction.getOpcode(), left.constant(), right.constant());
            if (number != null) {
                return Fact.number(number);
            }
        }
        return Fact.of(basic.binaryOperation(instruction, left.basic(), right.basic()));
    }

    /** Division is left out: it may have to throw. */
    private static Integer binary(int opcode, int left, int right) {
        return switch (opcode) {
            case IADD -> left + right;
            case ISUB -> left - right;
            case IMUL -> left * right;
            case IAND -> left & right;
            case IOR -> left | right;
            case IXOR -> left ^ right;
            case ISHL -> left << right;
            case ISHR -> left >> right;
            case IUSHR -> left >>> right;
            default -> null;
        };
    }

    @Override
    public Fact ternaryOperation(AbstractInsnNode instruction, Fact array, Fact index, Fact value) {
        return null;
    }

    @Override
    public Fact naryOperation(AbstractInsnNode instruction, List<? extends Fact> values)
            throws AnalyzerException {
        List<BasicValue> kinds = values.stream().map(Fact::basic).toList();
        return Fact.of(basic.naryOperation(instruction, kinds));
    }

    @Override
    public void returnOperation(AbstractInsnNode instruction, Fact value, Fact expected) {}

    @Override
    public Fact merge(Fact left, Fact right) {
        return left.merge(right);
    }
}
