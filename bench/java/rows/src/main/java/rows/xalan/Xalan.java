package rows.xalan;

import java.io.InputStream;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import javax.xml.transform.Templates;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import rows.Checksum;
import rows.Crew;
import rows.Row;
import rows.Settings;

/** Apache Xalan: transforms generated documents by several stylesheets, on several threads. */
public final class Xalan implements Row {
    private static final int DOCUMENTS = 8;

    private static final String[] STYLESHEETS = {"page.xsl", "report.xsl", "reduce.xsl", "chart.xsl"};

    private static final long EXPECTED = 0xc392f0f8579b19aeL;

    private final int threads;
    private final List<Templates> stylesheets = new ArrayList<>();
    private final List<String> documents = new ArrayList<>();

    public Xalan(Settings settings) throws Exception {
        threads = Math.min(settings.threads(), DOCUMENTS);
        // The JDK has a fork of Xalan's compiler; this is its interpreter.
        TransformerFactory factory = new org.apache.xalan.processor.TransformerFactoryImpl();
        for (String name : STYLESHEETS) {
            try (InputStream stylesheet = Xalan.class.getResourceAsStream(name)) {
                stylesheets.add(factory.newTemplates(new StreamSource(stylesheet)));
            }
        }
        for (int seed = 1; seed <= DOCUMENTS; seed++) {
            documents.add(new Orders(seed).text());
        }
    }

    @Override
    public int warmups() {
        return 4;
    }

    @Override
    public int iterations() {
        return 7;
    }

    @Override
    public long operations() {
        return (long) DOCUMENTS * STYLESHEETS.length;
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() throws Exception {
        long[] checksums = new long[DOCUMENTS];
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            int first = thread;
            tasks.add(
                    () -> {
                        for (int i = first; i < DOCUMENTS; i += threads) {
                            checksums[i] = transform(documents.get(i));
                        }
                        return null;
                    });
        }
        Crew.run("xalan", tasks);
        Checksum checksum = new Checksum();
        for (long each : checksums) {
            checksum.add(each);
        }
        return checksum.value();
    }

    private long transform(String document) throws Exception {
        Checksum output = new Checksum();
        for (Templates stylesheet : stylesheets) {
            stylesheet
                    .newTransformer()
                    .transform(
                            new StreamSource(new StringReader(document)), new StreamResult(output));
        }
        return output.value();
    }
}
