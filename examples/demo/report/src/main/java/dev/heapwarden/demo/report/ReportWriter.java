package dev.heapwarden.demo.report;

/** Writes the XML text of made-up reports of varying length. Not thread-safe. */
final class ReportWriter {
    private static final int ROWS_MINIMUM = 200;
    private static final int ROWS_SPREAD = 1_000;

    private long number;

    /** The next report's text: rows of three columns. */
    String next() {
        long report = number++;
        // A full-period walk through the lengths (331 and the spread have no common divisor).
        int rows = ROWS_MINIMUM + (int) (report * 331 % ROWS_SPREAD);
        StringBuilder xml = new StringBuilder();
        xml.append("<report number='").append(report).append("'>\n");
        for (int row = 0; row < rows; row++) {
            xml.append("  <row id='").append(row).append("'>");
            xml.append("<item>article ").append(row % 97).append("</item>");
            xml.append("<amount>").append(row * 31L % 1_009).append("</amount>");
            xml.append("<remark>sold &amp; delivered on day ").append(row % 365).append("</remark>");
            xml.append("</row>\n");
        }
        return xml.append("</report>\n").toString();
    }
}
