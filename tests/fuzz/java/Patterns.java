/** As {@link Shapes}, of JDK 21 and later: switches by pattern. */
class Patterns {
    sealed interface Figure permits Circle, Square {}

    record Circle(double radius) implements Figure {}

    record Square(double side, Object label) implements Figure {}

    static Object area(Object figure) {
        return switch (figure) {
            case Circle(double radius) when radius > 1 -> new double[] {radius};
            case Square(double side, String label) -> label + side;
            case Figure other -> new Object[] {other};
            case null, default -> null;
        };
    }
}
