package dev.heapwarden.agent;

/** The target of a request, as it stands in its first line. */
final class RequestTarget {
    private RequestTarget() {}

    /** Whether a path means itself: nothing in it is encoded, and no part of it leads elsewhere. */
    static boolean isPlain(String path) {
        return path.startsWith("/")
                && path.indexOf('%') < 0
                && path.indexOf('\\') < 0
                && path.indexOf(';') < 0
                && !path.contains("//")
                && !path.contains("/.");
    }

    /** The path of a target, which may be a whole address. Allocates only if that is not all of it. */
    static String path(String target) {
        if (target == null) {
            return null;
        }
        int from = 0;
        int scheme = target.startsWith("/") ? -1 : target.indexOf("://");
        if (scheme >= 0) {
            from = target.indexOf('/', scheme + 3);
            if (from < 0) {
                return "/";
            }
        }
        int to = target.length();
        for (int at = from; at < to; at++) {
            char letter = target.charAt(at);
            if (letter == '?' || letter == '#') {
                to = at;
            }
        }
        return target.substring(from, to);
    }
}
