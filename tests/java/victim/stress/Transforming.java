package victim.stress;

import java.io.StringReader;
import java.io.StringWriter;
import java.util.Random;
import java.util.function.LongFunction;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerException;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;

/** Compiles a style sheet, and transforms a document with it. */
public final class Transforming implements LongFunction<String> {
    private static final String STYLE =
            "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>"
                    + "<xsl:output method='xml' indent='yes' encoding='UTF-8'/>"
                    + "<xsl:key name='by-kind' match='item' use='@kind'/>"
                    + "<xsl:param name='unit' select=\"'EUR'\"/>"
                    + "<xsl:template match='/order'><list total='{sum(item/@price)}'>"
                    + "<xsl:for-each select='item'><xsl:sort select='@price' data-type='number'"
                    + " order='descending'/><xsl:sort select='.'/>"
                    + "<xsl:call-template name='line'/></xsl:for-each>"
                    + "<odd><xsl:value-of select=\"count(key('by-kind', 'odd'))\"/></odd>"
                    + "</list></xsl:template>"
                    + "<xsl:template name='line'><xsl:choose>"
                    + "<xsl:when test='@price &gt; 500'><dear><xsl:value-of"
                    + " select=\"concat(., ' ', format-number(@price, '#,##0.00'), ' ', $unit)\"/>"
                    + "</dear></xsl:when><xsl:otherwise><cheap><xsl:value-of"
                    + " select=\"translate(substring-after(., '-'), 'aeiou', 'AEIOU')\"/></cheap>"
                    + "</xsl:otherwise></xsl:choose></xsl:template></xsl:stylesheet>";

    @Override
    public String apply(long seed) {
        try {
            TransformerFactory factory = TransformerFactory.newInstance();
            factory.setErrorListener(new Silent());
            Transformer transformer =
                    factory.newTransformer(new StreamSource(new StringReader(STYLE)));
            transformer.setErrorListener(new Silent());
            StringWriter out = new StringWriter();
            transformer.transform(
                    new StreamSource(new StringReader(document(seed))), new StreamResult(out));
            return out.toString();
        } catch (TransformerException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String document(long seed) {
        Random random = new Random(seed);
        StringBuilder text = new StringBuilder("<?xml version='1.0'?><order>");
        for (int i = 0; i < 150; i++) {
            text.append("<item price='").append(random.nextInt(1_000)).append("' kind='");
            text.append(i % 2 == 0 ? "even" : "odd").append("'>nr-").append(random.nextInt(5));
            text.append(" of <![CDATA[<these>]]> &amp; those</item>");
        }
        return text.append("</order>").toString();
    }

    /** Throws what it hears of, and prints nothing. */
    private static final class Silent implements javax.xml.transform.ErrorListener {
        @Override
        public void warning(TransformerException e) {}

        @Override
        public void error(TransformerException e) throws TransformerException {
            throw e;
        }

        @Override
        public void fatalError(TransformerException e) throws TransformerException {
            throw e;
        }
    }
}
