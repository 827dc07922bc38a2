package victim.invariants;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.function.IntSupplier;

/** Class files. */
final class Code {
    private Code() {}

    /** The class file of a victim. */
    static byte[] of(String name) {
        String path = name.replace('.', '/') + ".class";
        try (InputStream in = Code.class.getClassLoader().getResourceAsStream(path)) {
            return in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A new copy of a class of the tenant's, with nothing of it linked. */
    static IntSupplier fresh(String name) throws ReflectiveOperationException {
        return instance(new Copies().define(name, of(name)));
    }

    /** A new copy that is initialised when it is asked first. */
    static IntSupplier uninitialised(String name) {
        Class<?> type = new Copies().define(name, of(name));
        return () -> {
            try {
                Class.forName(name, true, type.getClassLoader());
                return instance(type).getAsInt();
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        };
    }

    /** A class whose {@code getAsInt} loads a dynamic constant that has not been computed yet. */
    static IntSupplier freshConstant() throws ReflectiveOperationException {
        return instance(new Copies().define(Constant.NAME, Constant.code()));
    }

    private static IntSupplier instance(Class<?> type) throws ReflectiveOperationException {
        return (IntSupplier) type.getDeclaredConstructor().newInstance();
    }

    private static final class Copies extends ClassLoader {
        Copies() {
            super(Code.class.getClassLoader());
        }

        Class<?> define(String name, byte[] code) {
            return defineClass(name, code, 0, code.length);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            Class<?> own = findLoadedClass(name);
            return own == null ? super.loadClass(name, resolve) : own;
        }
    }
}
