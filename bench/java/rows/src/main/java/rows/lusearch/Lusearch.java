package rows.lusearch;

import java.io.IOException;
import java.util.List;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.queryparser.classic.ParseException;
import org.apache.lucene.queryparser.classic.QueryParser;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TopDocs;
import rows.Checksum;
import rows.Row;
import rows.Settings;
import rows.luindex.Corpus;
import rows.luindex.Indexer;

/** Lucene answers queries of several kinds from an index in memory. */
public final class Lusearch implements Row {
    private static final long SEED = 20_060_115;
    private static final int VOCABULARY = 40_000;
    private static final int ARTICLES = 10_000;
    private static final int QUERIES = 2_500;
    private static final int HITS = 20;

    private static final long EXPECTED = 0x9aa7bbcaea5ac0fdL;

    private final DirectoryReader reader;
    private final IndexSearcher searcher;
    private final List<String> questions;

    public Lusearch(Settings settings) throws IOException {
        Corpus corpus = new Corpus(SEED, VOCABULARY, ARTICLES);
        reader = DirectoryReader.open(Indexer.index(corpus.articles()));
        searcher = new IndexSearcher(reader);
        // Each iteration has to do all the work again.
        searcher.setQueryCache(null);
        questions = new Questions(SEED, corpus).next(QUERIES);
    }

    @Override
    public int warmups() {
        return 4;
    }

    @Override
    public int iterations() {
        return 8;
    }

    @Override
    public long operations() {
        return questions.size();
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() throws IOException, ParseException {
        Checksum checksum = new Checksum();
        StoredFields stored = reader.storedFields();
        for (String question : questions) {
            // A parser keeps state; users make one for each query.
            Query query = new QueryParser("body", Indexer.analyzer()).parse(question);
            TopDocs found = searcher.search(query, HITS);
            checksum.add(found.totalHits.value);
            for (ScoreDoc hit : found.scoreDocs) {
                Document document = stored.document(hit.doc);
                checksum.add(document.get("id"));
                checksum.add(document.get("title"));
            }
        }
        return checksum.value();
    }
}
