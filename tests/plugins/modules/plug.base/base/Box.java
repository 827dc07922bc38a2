package base;

/** Code that both plugins use. */
public final class Box {
    private Box() {}

    public static Object of(int length) {
        return new byte[length];
    }
}
