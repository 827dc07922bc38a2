package victim.ways.news;

import victim.ways.Way;

/** Instances by {@code new}, of several sizes. */
public final class News implements Way {
    private static class Small {
        byte one = 1;
    }

    private static final class Large extends Small {
        long[] none = null;
        double two = 2;
        Object three = this;
        int four = 4;
    }

    private final class Inner {
        final News outer = News.this;
    }

    @Override
    public Object run(int rounds) {
        Object last = null;
        for (int i = 0; i < rounds; i++) {
            Large large = new Large();
            large.three = new Small();
            last = i % 3 == 0 ? new Inner() : large;
        }
        return last;
    }
}
