package victim.ways.reflective;

import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import victim.ways.Way;

/** Makes objects by the JDK's reflection. */
public final class Reflective implements Way {
    /** To be made by its constructor. */
    public static final class Made {
        final long number = 1;
    }

    private final Constructor<Made> constructor;

    public Reflective() throws ReflectiveOperationException {
        constructor = Made.class.getConstructor();
    }

    @Override
    public Object run(int rounds) throws Exception {
        Object[] last = null;
        for (int i = 0; i < rounds; i++) {
            int length = i % 7;
            last =
                    new Object[] {
                        Array.newInstance(int.class, length),
                        Array.newInstance(String.class, length),
                        Array.newInstance(byte.class, 3, length),
                        Array.newInstance(String.class, 2, 2, length),
                        constructor.newInstance(),
                    };
        }
        return last;
    }
}
