package rows.fop;

import java.util.Random;

/** A generated document in XSL-FO: chapters of text in two fonts, lists, a table and a drawing each. */
final class Catalogue {
    private static final int CHAPTERS = 6;
    private static final int PARAGRAPHS = 12;
    private static final int ENTRIES = 10;
    private static final int TABLE_ROWS = 60;
    private static final int TABLE_COLUMNS = 5;
    private static final int BARS = 12;

    private static final String[] WORDS = {
        "account", "balance", "carriage", "delivery", "envelope", "forwarding", "guarantee", "harbour",
        "invoice", "journal", "kilogram", "ledger", "merchandise", "notice", "order", "parcel", "quantity",
        "receipt", "shipment", "tariff", "unit", "voucher", "warehouse", "of", "the", "in", "a", "to", "and"
    };

    private final Random random;
    private final StringBuilder out = new StringBuilder();

    Catalogue(long seed) {
        random = new Random(seed);
    }

    String text() {
        out.append(
                """
                <fo:root xmlns:fo="http://www.w3.org/1999/XSL/Format">
                <fo:layout-master-set>
                <fo:simple-page-master master-name="page" page-width="210mm" page-height="297mm" margin="20mm">
                <fo:region-body margin-top="12mm" margin-bottom="12mm"/>
                <fo:region-before extent="10mm"/>
                <fo:region-after extent="10mm"/>
                </fo:simple-page-master>
                </fo:layout-master-set>
                <fo:page-sequence master-reference="page">
                <fo:static-content flow-name="xsl-region-before">
                <fo:block font-size="8pt" text-align="end">Catalogue</fo:block>
                </fo:static-content>
                <fo:static-content flow-name="xsl-region-after">
                <fo:block font-size="8pt" text-align="center">
                <fo:page-number/> of <fo:page-number-citation-last ref-id="document"/>
                </fo:block>
                </fo:static-content>
                <fo:flow flow-name="xsl-region-body">
                <fo:block id="document">
                """);
        for (int chapter = 1; chapter <= CHAPTERS; chapter++) {
            chapter(chapter);
        }
        out.append("</fo:block></fo:flow></fo:page-sequence></fo:root>\n");
        String text = out.toString();
        out.setLength(0);
        return text;
    }

    private void chapter(int number) {
        out.append("<fo:block id=\"chapter-").append(number);
        out.append("\" font-family=\"Helvetica\" font-size=\"16pt\" space-before=\"8mm\"");
        out.append(" keep-with-next.within-page=\"always\">").append(number).append(". ");
        words(4);
        out.append("</fo:block>\n");
        for (int i = 0; i < PARAGRAPHS; i++) {
            paragraph(number);
        }
        list();
        table();
        drawing();
    }

    private void paragraph(int chapter) {
        out.append("<fo:block font-family=\"Times\" font-size=\"10pt\" text-align=\"justify\"");
        out.append(" space-after=\"2mm\" widows=\"2\" orphans=\"2\">");
        words(40 + random.nextInt(60));
        out.append(" <fo:inline font-weight=\"bold\">");
        words(3);
        out.append("</fo:inline> (chapter <fo:page-number-citation ref-id=\"chapter-");
        out.append(1 + random.nextInt(chapter)).append("\"/>) ");
        words(20);
        out.append(".</fo:block>\n");
    }

    private void list() {
        out.append("<fo:list-block provisional-distance-between-starts=\"8mm\">\n");
        for (int i = 1; i <= ENTRIES; i++) {
            out.append("<fo:list-item><fo:list-item-label end-indent=\"label-end()\"><fo:block>");
            out.append(i);
            out.append("</fo:block></fo:list-item-label>");
            out.append("<fo:list-item-body start-indent=\"body-start()\"><fo:block>");
            words(8 + random.nextInt(12));
            out.append("</fo:block></fo:list-item-body></fo:list-item>\n");
        }
        out.append("</fo:list-block>\n");
    }

    private void table() {
        out.append("<fo:table table-layout=\"fixed\" width=\"100%\" font-size=\"8pt\"");
        out.append(" border-collapse=\"separate\">\n");
        for (int column = 0; column < TABLE_COLUMNS; column++) {
            out.append("<fo:table-column column-width=\"proportional-column-width(1)\"/>\n");
        }
        out.append("<fo:table-header><fo:table-row>");
        for (int column = 0; column < TABLE_COLUMNS; column++) {
            cell("Helvetica");
        }
        out.append("</fo:table-row></fo:table-header><fo:table-body>\n");
        for (int row = 0; row < TABLE_ROWS; row++) {
            out.append("<fo:table-row>");
            for (int column = 0; column < TABLE_COLUMNS; column++) {
                cell("Times");
            }
            out.append("</fo:table-row>\n");
        }
        out.append("</fo:table-body></fo:table>\n");
    }

    private void cell(String font) {
        out.append("<fo:table-cell border=\"0.3pt solid black\" padding=\"1mm\"><fo:block font-family=\"");
        out.append(font).append("\">");
        words(1 + random.nextInt(3));
        out.append(' ').append(random.nextInt(10_000));
        out.append("</fo:block></fo:table-cell>");
    }

    private void drawing() {
        out.append("<fo:block space-before=\"4mm\"><fo:instream-foreign-object>");
        out.append("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"360\" height=\"100\">");
        for (int bar = 0; bar < BARS; bar++) {
            int height = 5 + random.nextInt(95);
            out.append("<rect x=\"").append(bar * 30).append("\" y=\"").append(100 - height);
            out.append("\" width=\"24\" height=\"").append(height).append("\" fill=\"rgb(");
            out.append(random.nextInt(256)).append(",80,160)\"/>");
        }
        out.append("</svg></fo:instream-foreign-object></fo:block>\n");
    }

    private void words(int count) {
        for (int i = 0; i < count; i++) {
            if (i > 0) {
                out.append(' ');
            }
            out.append(WORDS[random.nextInt(WORDS.length)]);
        }
    }
}
