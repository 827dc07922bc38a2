package victim;

/** An application that does a little work, says so and ends by itself with exit code 0. */
public final class Plain {
    private Plain() {}

    public static void main(String[] args) {
        int length = 0;
        for (int i = 0; i < 20_000; i++) {
            length += ("item " + i).length();
        }
        System.out.println("plain application done: " + length);
    }
}
