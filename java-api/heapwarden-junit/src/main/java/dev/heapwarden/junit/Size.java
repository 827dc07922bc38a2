package dev.heapwarden.junit;

import java.math.BigDecimal;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sizes as the policy file has them: powers of 1024, nothing to guess. */
final class Size {
    private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};

    /** More than a multiple of one over 2^40 can need, and a bound for what is multiplied. */
    private static final Pattern FORM =
            Pattern.compile("([0-9]{1,40})(?:\\.([0-9]{1,40}))? ?([A-Za-z]*)");

    private Size() {}

    /**
     * Reads a size.
     *
     * @return bytes
     * @throws IllegalArgumentException says what to write instead
     */
    static long parse(String text) {
        Matcher form = FORM.matcher(text.trim());
        if (!form.matches()) {
            throw wrong(text, "write a number and a unit, such as \"256MiB\"");
        }
        BigDecimal bytes =
                new BigDecimal(form.group(1) + (form.group(2) == null ? "" : "." + form.group(2)))
                        .multiply(BigDecimal.valueOf(unit(text, form.group(3))));
        try {
            return bytes.toBigIntegerExact().longValueExact();
        } catch (ArithmeticException inexact) {
            boolean fraction = bytes.stripTrailingZeros().scale() > 0;
            throw wrong(text, fraction ? "it is no whole number of bytes" : "it is too large");
        }
    }

    /** As in {@code 80.0 MiB}, or {@code 512 B}; the last digit rounded. */
    static String format(double bytes) {
        double amount = bytes;
        int unit = 0;
        while (amount >= 1024 && unit < UNITS.length - 1) {
            amount /= 1024;
            unit++;
        }
        String form = unit == 0 ? "%.0f %s" : "%.1f %s";
        return String.format(java.util.Locale.ROOT, form, amount, UNITS[unit]);
    }

    private static long unit(String text, String name) {
        if (name.isEmpty()) {
            return 1;
        }
        for (int at = 0; at < UNITS.length; at++) {
            if (UNITS[at].equals(name)) {
                return 1L << (10 * at);
            }
        }
        throw wrong(text, "the units are B, KiB, MiB, GiB and TiB, in powers of 1024");
    }

    private static IllegalArgumentException wrong(String text, String hint) {
        return new IllegalArgumentException("\"" + text + "\" is not a size: " + hint);
    }
}
