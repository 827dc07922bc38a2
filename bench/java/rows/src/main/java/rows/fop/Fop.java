package rows.fop;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.StringReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import javax.xml.parsers.SAXParserFactory;
import org.apache.fop.apps.FOUserAgent;
import org.apache.fop.apps.FopFactory;
import org.apache.xmlgraphics.util.MimeConstants;
import org.xml.sax.InputSource;
import rows.Row;
import rows.Settings;

/** Apache FOP: renders generated catalogues, XSL-FO documents, to PDF. */
public final class Fop implements Row {
    private static final int DOCUMENTS = 6;

    private static final long EXPECTED = 0x0ab01dc41276c25eL;

    /**
     * Features that depend on the JVM are left out: deflated streams depend on its zlib, and the colour profile is its
     * own.
     */
    private static final String CONFIGURATION =
            """
            <fop version="1.0">
              <renderers>
                <renderer mime="application/pdf">
                  <filterList>
                    <value>null</value>
                  </filterList>
                  <disable-srgb-colorspace>true</disable-srgb-colorspace>
                </renderer>
              </renderers>
            </fop>
            """;

    /** Kept, since a level is forgotten with its logger. */
    private static final Logger LOGGER = Logger.getLogger("org.apache.fop");

    private final FopFactory factory;
    private final SAXParserFactory parsers = SAXParserFactory.newDefaultNSInstance();
    private final List<String> documents = new ArrayList<>();

    public Fop(Settings settings) throws Exception {
        LOGGER.setLevel(Level.WARNING);
        InputStream configuration =
                new ByteArrayInputStream(CONFIGURATION.getBytes(StandardCharsets.UTF_8));
        factory = FopFactory.newInstance(URI.create("file:///"), configuration);
        for (int seed = 1; seed <= DOCUMENTS; seed++) {
            documents.add(new Catalogue(seed).text());
        }
    }

    /** Its classes are many, and the first documents are much slower. */
    @Override
    public int warmups() {
        return 4;
    }

    @Override
    public long operations() {
        return DOCUMENTS;
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() throws Exception {
        StablePdf pdf = new StablePdf();
        for (String document : documents) {
            render(document, pdf);
        }
        return pdf.checksum();
    }

    private void render(String document, OutputStream pdf) throws Exception {
        FOUserAgent agent = factory.newFOUserAgent();
        agent.setCreationDate(new Date(0));
        org.apache.fop.apps.Fop fop = factory.newFop(MimeConstants.MIME_PDF, agent, pdf);
        parsers.newSAXParser()
                .parse(new InputSource(new StringReader(document)), fop.getDefaultHandler());
    }
}
