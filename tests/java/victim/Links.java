package victim;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.Random;

/**
 * Loads classes, and links them a moment later.
 *
 * <pre>
 * storm SECONDS    by a thread of its own: linked COUNT
 * </pre>
 *
 * The classes have so much code that the JVM needs milliseconds to change it, which it does when it links them.
 */
public final class Links {
    private static final String NAME = "victim.Long";
    private static final int METHODS = 20;
    private static final int READS = 15_000;
    private static final int AT_ONCE = 24;

    private static final int ACC_PUBLIC_STATIC = 0x0009;
    private static final int GETSTATIC = 0xB2;
    private static final int POP = 0x57;
    private static final int RETURN = 0xB1;

    private Links() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(Map.of("storm", words -> storm(Integer.parseInt(words[1]))));
    }

    private static void storm(int seconds) throws Exception {
        byte[] file = write();
        long until = System.nanoTime() + seconds * 1_000_000_000L;
        int[] linked = new int[1];
        Thread thread = new Thread(() -> linked[0] = link(file, until));
        thread.start();
        thread.join();
        Protocol.say("linked " + linked[0]);
    }

    private static int link(byte[] file, long until) {
        Random random = new Random(1);
        int linked = 0;
        try {
            while (System.nanoTime() < until) {
                Class<?>[] loaded = new Class<?>[AT_ONCE];
                for (int at = 0; at < AT_ONCE; at++) {
                    loaded[at] = new Loader().define(file);
                }
                Collections.shuffle(Arrays.asList(loaded), random);
                for (Class<?> one : loaded) {
                    Class.forName(NAME, true, one.getClassLoader());
                    linked++;
                }
                // The classes of the round before need not be looked at any more.
                System.gc();
            }
        } catch (ReflectiveOperationException failed) {
            throw new AssertionError(failed);
        }
        return linked;
    }

    /** A class whose methods read its static field, again and again. */
    private static byte[] write() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream file = new DataOutputStream(bytes);
        file.writeInt(0xCAFEBABE);
        file.writeInt(50);
        file.writeShort(11 + METHODS);
        text(file, NAME.replace('.', '/'));
        reference(file, 7, 1);
        text(file, "java/lang/Object");
        reference(file, 7, 3);
        text(file, "field");
        text(file, "I");
        reference(file, 12, 5, 6);
        reference(file, 9, 2, 7);
        text(file, "Code");
        text(file, "()V");
        for (int method = 0; method < METHODS; method++) {
            text(file, "method" + method);
        }
        shorts(file, 0x0021, 2, 4, 0);
        shorts(file, 1, ACC_PUBLIC_STATIC, 5, 6, 0);
        shorts(file, METHODS);
        int length = 4 * READS + 1;
        for (int method = 0; method < METHODS; method++) {
            shorts(file, ACC_PUBLIC_STATIC, 11 + method, 10, 1, 9);
            file.writeInt(length + 12);
            shorts(file, 1, 0);
            file.writeInt(length);
            for (int read = 0; read < READS; read++) {
                file.writeByte(GETSTATIC);
                file.writeShort(8);
                file.writeByte(POP);
            }
            file.writeByte(RETURN);
            shorts(file, 0, 0);
        }
        shorts(file, 0);
        return bytes.toByteArray();
    }

    private static void text(DataOutputStream file, String text) throws IOException {
        file.writeByte(1);
        file.writeUTF(text);
    }

    private static void reference(DataOutputStream file, int tag, int... to) throws IOException {
        file.writeByte(tag);
        shorts(file, to);
    }

    private static void shorts(DataOutputStream file, int... values) throws IOException {
        for (int value : values) {
            file.writeShort(value);
        }
    }

    /** Has a class of its own, and the rest from the program. */
    private static final class Loader extends ClassLoader {
        Loader() {
            super(Links.class.getClassLoader());
        }

        Class<?> define(byte[] file) {
            return defineClass(NAME, file, 0, file.length);
        }
    }
}
