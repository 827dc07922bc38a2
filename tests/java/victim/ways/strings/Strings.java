package victim.ways.strings;

import java.nio.charset.StandardCharsets;
import victim.ways.Way;

/** Strings in both of their forms; not by {@code +}, which hidden classes of the JDK may carry out. */
public final class Strings implements Way {
    private final char[] latin = {'a', 'b', 'c'};
    private final char[] wide = {'\u0151', 'x', '\u4e2d'};
    private final byte[] bytes = "caf\u00e9 \u4e2d".getBytes(StandardCharsets.UTF_8);

    @Override
    public Object run(int rounds) {
        String last = "";
        for (int i = 0; i < rounds; i++) {
            StringBuilder builder = new StringBuilder();
            builder.append(i).append(" of ").append(rounds).append(last.length());
            builder.append('/').append((char) ('a' + i % 26));
            String both = builder.toString();
            last =
                    both.substring(1)
                            .concat(new String(latin))
                            .concat(new String(wide))
                            .concat(new String(bytes, StandardCharsets.UTF_8).toUpperCase())
                            .concat(both.replace('1', '\u0151'))
                            .concat(String.valueOf(latin, 0, i % 3));
            builder.append(both.getBytes(StandardCharsets.UTF_8).length);
            builder.append(both.toCharArray(), 0, 1);
        }
        return last;
    }
}
