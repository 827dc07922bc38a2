package tenant;

import java.util.function.IntFunction;

/**
 * A service's own code: defined by its own class loader, so that its frames name that loader.
 *
 * <p>{@code apply(length)} allocates one {@code byte[length]} in a frame of this class.
 */
public final class Tenant implements IntFunction<Object> {
    @Override
    public Object apply(int length) {
        return new byte[length];
    }
}
