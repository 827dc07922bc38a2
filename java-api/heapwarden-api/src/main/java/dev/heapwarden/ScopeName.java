package dev.heapwarden;

/**
 * Which names a scope may have, where the agent is absent. Its own {@code ScopeName} has the same rule;
 * a test holds one to the other.
 */
final class ScopeName {
    /** Bytes of UTF-8 at the most. */
    static final int MAX_BYTES = 200;

    private static final String RULE =
            "a scope's name has 1 to 200 bytes of UTF-8, no control characters, no blank at either"
                    + " end, no '/' and no '_' at its start; this one ";

    private ScopeName() {}

    /** Returns the fault of a name, as a sentence with the rule; null for a good one. */
    static String fault(String name) {
        int length = name.length();
        if (plain(name, length)) {
            return null;
        }
        if (length == 0) {
            return RULE.concat("is empty");
        }
        // Before the walk: a name of a gigabyte is refused at once.
        if (length > MAX_BYTES) {
            return RULE.concat("is longer");
        }
        int bytes = 0;
        for (int at = 0; at < length; at++) {
            char unit = name.charAt(at);
            if (Character.isISOControl(unit) || unit == '\u2028' || unit == '\u2029') {
                return RULE.concat("has a control character");
            }
            if (unit == '/') {
                return RULE.concat("has a '/'");
            }
            if (Character.isHighSurrogate(unit)
                    && at + 1 < length
                    && Character.isLowSurrogate(name.charAt(at + 1))) {
                bytes += 4;
                at++;
            } else if (Character.isSurrogate(unit)) {
                return RULE.concat("has half a surrogate pair");
            } else {
                bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
            }
        }
        if (bytes > MAX_BYTES) {
            return RULE.concat("is longer");
        }
        if (blank(name.charAt(0)) || blank(name.charAt(length - 1))) {
            return RULE.concat("has a blank at an end");
        }
        return name.charAt(0) == '_' ? RULE.concat("starts with '_'") : null;
    }

    /** Returns whether a name is good for sure, seen at a glance, as most names are. */
    private static boolean plain(String name, int length) {
        if (length == 0 || length > MAX_BYTES || name.charAt(0) == '_') {
            return false;
        }
        for (int at = 0; at < length; at++) {
            char unit = name.charAt(at);
            if (unit <= ' ' || unit >= '\u007f' || unit == '/') {
                return false;
            }
        }
        return true;
    }

    private static boolean blank(char unit) {
        return Character.isWhitespace(unit) || Character.isSpaceChar(unit);
    }
}
