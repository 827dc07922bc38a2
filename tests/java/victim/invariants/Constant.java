package victim.invariants;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.IntSupplier;

/**
 * A class with {@code int getAsInt() { return [what Bootstrap.eleven computes, once]; }}: a dynamic
 * constant, which javac cannot be made to write (JVM specification, 4.4.10 and 4.7.23).
 */
final class Constant {
    static final String NAME = "victim.tenant.Constant";

    private static final int JAVA_17 = 61;
    private static final int CLASS = 7;
    private static final int METHOD = 10;
    private static final int NAME_AND_TYPE = 12;
    private static final int METHOD_HANDLE = 15;
    private static final int DYNAMIC = 17;
    private static final int INVOKE_STATIC = 6;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(bytes);
    private int constants;

    private Constant() {}

    static byte[] code() {
        try {
            Constant file = new Constant();
            int own = file.type(NAME);
            int parent = file.type("java.lang.Object");
            int supplier = file.type(IntSupplier.class.getName());
            int init = file.utf8("<init>");
            int nothing = file.utf8("()V");
            int parentInit = file.refer(METHOD, parent, file.refer(NAME_AND_TYPE, init, nothing));
            int method = file.utf8("getAsInt");
            int number = file.utf8("()I");
            int code = file.utf8("Code");
            int bootstraps = file.utf8("BootstrapMethods");
            int eleven = file.utf8("eleven");
            int signature =
                    file.utf8(
                            "(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;"
                                    + "Ljava/lang/Class;)I");
            int bootstrap =
                    file.refer(
                            METHOD,
                            file.type("victim.tenant.Bootstrap"),
                            file.refer(NAME_AND_TYPE, eleven, signature));
            int handle = file.handle(bootstrap);
            int constant =
                    file.refer(
                            DYNAMIC, 0, file.refer(NAME_AND_TYPE, eleven, file.utf8("I")));

            Constant whole = new Constant();
            whole.out.writeInt(0xCAFEBABE);
            whole.shorts(0, JAVA_17, file.constants + 1);
            file.bytes.writeTo(whole.out);
            whole.shorts(0x0031, own, parent, 1, supplier, 0, 2);
            // aload_0, invokespecial, return
            whole.method(init, nothing, code, 0x2A, 0xB7, parentInit >> 8, parentInit, 0xB1);
            // ldc, ireturn
            whole.method(method, number, code, 0x12, constant, 0xAC);
            whole.shorts(1, bootstraps, 0, 6, 1, handle, 0);
            return whole.bytes.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private int utf8(String text) throws IOException {
        out.writeByte(1);
        out.writeUTF(text);
        return ++constants;
    }

    private int type(String name) throws IOException {
        return refer(CLASS, utf8(name.replace('.', '/')));
    }

    private int refer(int tag, int... others) throws IOException {
        out.writeByte(tag);
        shorts(others);
        return ++constants;
    }

    private int handle(int method) throws IOException {
        out.writeByte(METHOD_HANDLE);
        out.writeByte(INVOKE_STATIC);
        shorts(method);
        return ++constants;
    }

    private void shorts(int... values) throws IOException {
        for (int value : values) {
            out.writeShort(value);
        }
    }

    private void method(int name, int signature, int code, int... instructions)
            throws IOException {
        shorts(1, name, signature, 1, code, 0, 12 + instructions.length, 1, 1);
        shorts(0, instructions.length);
        for (int instruction : instructions) {
            out.writeByte(instruction);
        }
        shorts(0, 0);
    }
}
