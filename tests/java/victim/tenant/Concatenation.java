package victim.tenant;

import java.util.function.IntSupplier;

/** String concatenation: the linkage of its call site, and the string itself. */
public final class Concatenation implements IntSupplier {
    private final int orders = 5;
    private String customer = "nine chrs";

    @Override
    public int getAsInt() {
        customer = customer.intern();
        return (customer + orders + 'x').length();
    }
}
