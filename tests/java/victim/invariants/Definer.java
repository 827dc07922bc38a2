package victim.invariants;

import java.util.function.IntSupplier;

/**
 * A class loader that defines {@link Used} and {@link User} itself; how, its subclass says.
 *
 * <p>What it does on its own account is the observer's, so that the tenant's part alone is refused.
 */
public abstract class Definer extends ClassLoader {
    private static final String USED = "victim.invariants.Definer$Used";
    private static final String USER = "victim.invariants.Definer$User";

    /** Is asked by {@link User}. */
    public static final class Used {
        private Used() {}

        static int value() {
            return 11;
        }
    }

    /** Has the JVM load {@link Used} when it is asked. */
    public static final class User implements IntSupplier {
        @Override
        public int getAsInt() {
            return Used.value();
        }
    }

    protected Definer() {
        super(Definer.class.getClassLoader());
    }

    /** A user whose {@link Used} is not loaded yet. */
    public final IntSupplier user() throws ReflectiveOperationException {
        return (IntSupplier) define(USER).getDeclaredConstructor().newInstance();
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.equals(USED)) {
            return super.loadClass(name, resolve);
        }
        Class<?> known = findLoadedClass(name);
        return known == null ? findClass(name) : known;
    }

    @Override
    protected abstract Class<?> findClass(String name) throws ClassNotFoundException;

    protected final int length(String name) {
        return Code.of(name).length;
    }

    protected final void read(String name, byte[] into) {
        System.arraycopy(Code.of(name), 0, into, 0, into.length);
    }

    protected final Class<?> define(String name) {
        return define(name, Code.of(name));
    }

    protected final Class<?> define(String name, byte[] code) {
        return defineClass(name, code, 0, code.length);
    }

    protected static ClassNotFoundException notFound(String name, Throwable why) {
        return new ClassNotFoundException(name, why);
    }
}
