package victim.paths.maker;

/** Makes what others keep. */
public final class Maker {
    private Maker() {}

    public static byte[][] make(int count) {
        byte[][] made = new byte[count][];
        for (int number = 0; number < count; number++) {
            made[number] = new byte[1000];
        }
        return made;
    }
}
