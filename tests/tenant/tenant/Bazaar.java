package tenant;

import java.util.function.LongFunction;

/** A little of everything that the JDK has and that threads and services share within it. */
public final class Bazaar implements LongFunction<String> {
    @Override
    public String apply(long seed) {
        StringBuilder answer = new StringBuilder();
        for (Stall stall : Stall.values()) {
            answer.append(stall).append('=').append(stall.serve(seed)).append('\n');
        }
        return answer.toString();
    }
}
