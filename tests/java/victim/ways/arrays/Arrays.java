package victim.ways.arrays;

import victim.ways.Way;

/** Arrays of each kind, of all lengths around an alignment, and arrays in arrays. */
public final class Arrays implements Way {
    @Override
    public Object run(int rounds) {
        Object[] last = null;
        for (int i = 0; i < rounds; i++) {
            int length = i % 41;
            last =
                    new Object[] {
                        new byte[length],
                        new boolean[length],
                        new short[length],
                        new char[length],
                        new int[length],
                        new float[length],
                        new long[length],
                        new double[length],
                        new String[length],
                        new int[length][],
                        new int[3][length],
                        new String[2][3][length % 5],
                        new long[length % 2][4],
                        new Object[2][3][],
                    };
        }
        return last;
    }
}
