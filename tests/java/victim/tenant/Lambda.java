package victim.tenant;

import java.util.function.IntSupplier;

/** A lambda that captures nothing: only its linkage allocates. */
public final class Lambda implements IntSupplier {
    @Override
    public int getAsInt() {
        IntSupplier eleven = () -> 11;
        return eleven.getAsInt();
    }
}
