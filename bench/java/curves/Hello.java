package curves;

/** What a JVM does at least. */
final class Hello {
    private Hello() {}

    public static void main(String[] args) {
        System.out.println("hello, world");
    }
}
