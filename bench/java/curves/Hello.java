package curves;

/** The least work of a JVM: prints one line. */
final class Hello {
    private Hello() {}

    public static void main(String[] args) {
        System.out.println("hello, world");
    }
}
