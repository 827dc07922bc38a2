package victim.tenant;

import victim.invariants.Definer;

/** Whatever goes wrong, it says that there is no such class, as many loaders do. */
public final class ConvertingLoader extends Definer {
    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        try {
            byte[] code = new byte[length(name)];
            read(name, code);
            return define(name, code);
        } catch (Throwable e) {
            throw notFound(name, e);
        }
    }
}
