package rows.luindex;

import java.io.IOException;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.IntPoint;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

/** Builds indexes in memory, by the calling thread alone. */
public final class Indexer {
    private static final int DOCUMENTS_IN_BUFFER = 1000;

    private Indexer() {}

    /** Takes words apart and to their stems: for the index and for queries on it. */
    public static Analyzer analyzer() {
        return new EnglishAnalyzer();
    }

    /** An index of the articles, merged to one segment. */
    public static Directory index(List<Corpus.Article> articles) throws IOException {
        Directory directory = new ByteBuffersDirectory();
        IndexWriterConfig config =
                new IndexWriterConfig(analyzer())
                        .setMergeScheduler(new SerialMergeScheduler())
                        .setMaxBufferedDocs(DOCUMENTS_IN_BUFFER)
                        // Segments must not depend on how much memory the buffer takes on this JVM.
                        .setRAMBufferSizeMB(IndexWriterConfig.DISABLE_AUTO_FLUSH);
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            for (Corpus.Article article : articles) {
                writer.addDocument(document(article));
            }
            writer.forceMerge(1);
        }
        return directory;
    }

    private static Document document(Corpus.Article article) {
        Document document = new Document();
        document.add(new StringField("id", article.id(), Field.Store.YES));
        document.add(new TextField("title", article.title(), Field.Store.YES));
        document.add(new TextField("body", article.body(), Field.Store.NO));
        document.add(new IntPoint("day", article.day()));
        document.add(new NumericDocValuesField("day-order", article.day()));
        document.add(new StoredField("day-stored", article.day()));
        return document;
    }
}
