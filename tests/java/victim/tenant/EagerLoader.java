package victim.tenant;

import victim.invariants.Definer;

/** Allocates before and while it defines a class. */
public final class EagerLoader extends Definer {
    @Override
    protected Class<?> findClass(String name) {
        byte[] code = new byte[length(name)];
        read(name, code);
        return defineClass(name, code, 0, code.length);
    }
}
