/** As {@link Shapes}, of JDK 25: a constructor that does something before it calls the other. */
class Early {
    private final Object first;
    private final int size;

    Early(Object first) {
        this.first = first;
        this.size = 1;
    }

    Early(String text, int times) {
        if (times < 0) throw new IllegalArgumentException(text);
        Object[] made = new Object[times];
        for (int at = 0; at < times; at++) made[at] = new StringBuilder(text);
        this(made);
    }

    static class Below extends Early {
        final Object own;

        Below(int size) {
            this.own = new int[size];
            try {
                Integer.parseInt("1");
            } catch (NumberFormatException e) {
                size = new int[3].length;
            }
            super("below", size);
        }
    }
}
