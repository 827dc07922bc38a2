package dev.heapwarden.agent;

/**
 * The route of a request: its method and the first segments of its path, without what varies. Folds in place
 * and allocates nothing. One thread's.
 *
 * <p>The rules are those of {@code policy_core::enforce::routes::fold}, which folds once more what is asked
 * for here.
 */
final class RoutePath {
    private static final int MAX_SEGMENTS = 3;
    private static final int LONGEST_SEGMENT = 24;
    private static final String[] METHODS = {
        "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "OTHER"
    };
    private static final int OTHER = METHODS.length - 1;

    /** The folded path, of {@link #length} characters. */
    final char[] chars = new char[MAX_SEGMENTS * (LONGEST_SEGMENT + 1)];

    int length;
    int hash;

    /** A position in the methods. */
    int method;

    /**
     * Folds a request.
     *
     * @param begin where the path inside the application begins
     */
    void fold(String name, CharSequence path, int begin) {
        method = methodOf(name);
        int sum = method + 1;
        int filled = 0;
        int at = begin;
        int end = path.length();
        for (int segment = 0; segment < MAX_SEGMENTS; segment++) {
            while (at < end && path.charAt(at) == '/') {
                at++;
            }
            if (at >= end) {
                break;
            }
            chars[filled++] = '/';
            sum = sum * 31 + '/';
            int first = filled;
            int before = sum;
            boolean kept = true;
            for (char c; at < end && (c = path.charAt(at)) != '/'; at++) {
                if (!kept) {
                    continue;
                }
                if (filled - first < LONGEST_SEGMENT && isKept(c)) {
                    chars[filled++] = c;
                    sum = sum * 31 + c;
                } else {
                    kept = false;
                }
            }
            if (!kept) {
                filled = first;
                chars[filled++] = '*';
                sum = before * 31 + '*';
            }
        }
        if (filled == 0) {
            chars[filled++] = '/';
            sum = sum * 31 + '/';
        }
        length = filled;
        hash = sum ^ sum >>> 15;
    }

    /** The method's name; {@code OTHER} for one that is not known. */
    String method() {
        return METHODS[method];
    }

    /** The folded path. */
    String path() {
        return new String(chars, 0, length);
    }

    private static boolean isKept(char c) {
        return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '_' || c == '-';
    }

    private static int methodOf(String name) {
        for (int at = 0; at < OTHER; at++) {
            if (METHODS[at].equals(name)) {
                return at;
            }
        }
        return OTHER;
    }
}
