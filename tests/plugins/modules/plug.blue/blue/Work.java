package blue;

import base.Box;
import java.util.function.IntFunction;

/** A plugin that allocates by code that it shares with another. */
public final class Work implements IntFunction<Object> {
    @Override
    public Object apply(int length) {
        return Box.of(length);
    }
}
