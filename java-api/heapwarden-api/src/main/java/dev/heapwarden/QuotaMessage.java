package dev.heapwarden;

/**
 * The text of a refusal. Neither {@code String.format} nor compiled concatenation: both link method
 * handles at first use, on a thread that has just been refused memory.
 */
final class QuotaMessage {
    private static final String[] UNITS = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

    private QuotaMessage() {}

    static String of(MemoryQuotaExceeded refusal) {
        String account = refusal.account();
        if (account.isEmpty()) {
            return "a memory account is over its limit; there was no room to say which";
        }
        StringBuilder text = new StringBuilder(160);
        text.append("account \"").append(account).append("\" is over its memory limit: holds ");
        size(text, refusal.liveBytes()).append(", standard error ");
        size(text, refusal.standardErrorBytes()).append(", limit ");
        size(text, refusal.limitBytes());
        if (refusal.requestedBytes() == 0) {
            return text.append("; a new call was turned away at its door").toString();
        }
        text.append("; refused an object of ");
        return size(text, refusal.requestedBytes()).toString();
    }

    /** As in {@code 268435456 bytes (256.0 MiB)}, the unit rounded down. */
    private static StringBuilder size(StringBuilder text, long bytes) {
        text.append(bytes).append(' ').append(UNITS[0]);
        int unit = 0;
        long whole = bytes;
        long rest = 0;
        while (whole >= 1024) {
            rest = whole % 1024;
            whole /= 1024;
            unit++;
        }
        if (unit > 0) {
            text.append(" (").append(whole).append('.').append(rest * 10 / 1024);
            text.append(' ').append(UNITS[unit]).append(')');
        }
        return text;
    }
}
