package curves.tenant;

/** The one class whose allocations the account is charged with: arrays, and nothing else. */
public final class Tenant {
    private Tenant() {}

    /** An array of that length. */
    public static byte[] array(int length) {
        return new byte[length];
    }
}
