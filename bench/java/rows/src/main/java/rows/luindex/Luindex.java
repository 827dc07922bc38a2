package rows.luindex;

import java.io.IOException;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.Directory;
import org.apache.lucene.util.BytesRef;
import rows.Checksum;
import rows.Row;
import rows.Settings;

/** Lucene indexes articles into memory, with positions, stored fields, points and doc values. */
public final class Luindex implements Row {
    private static final long SEED = 20_051_121;
    private static final int VOCABULARY = 40_000;
    private static final int ARTICLES = 10_000;

    private static final long EXPECTED = 0x1515978a0fff1a2cL;

    private final Corpus corpus = new Corpus(SEED, VOCABULARY, ARTICLES);

    public Luindex(Settings settings) {}

    @Override
    public long operations() {
        return ARTICLES;
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() throws IOException {
        try (Directory directory = Indexer.index(corpus.articles());
                DirectoryReader reader = DirectoryReader.open(directory)) {
            Checksum checksum = new Checksum();
            checksum.add(reader.numDocs());
            for (LeafReaderContext leaf : reader.leaves()) {
                for (String field : new String[] {"id", "title", "body"}) {
                    add(checksum, leaf.reader().terms(field));
                }
            }
            return checksum.value();
        }
    }

    /** Takes each term, and where it occurs. The files themselves differ: each has an identity. */
    private static void add(Checksum checksum, Terms terms) throws IOException {
        TermsEnum each = terms.iterator();
        PostingsEnum postings = null;
        for (BytesRef term = each.next(); term != null; term = each.next()) {
            checksum.write(term.bytes, term.offset, term.length);
            postings = each.postings(postings, PostingsEnum.POSITIONS);
            while (postings.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) {
                checksum.add(postings.docID());
                for (int i = postings.freq(); i > 0; i--) {
                    checksum.add(postings.nextPosition());
                }
            }
        }
    }
}
