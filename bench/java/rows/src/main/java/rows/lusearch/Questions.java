package rows.lusearch;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import rows.luindex.Corpus;

/** Queries of each kind in turn, as a user would type them. */
final class Questions {
    /** The most frequent words find everything and tell nothing. */
    private static final int FIRST_RANK = 20;

    private static final int LAST_RANK = 4_000;

    /** Letters of a word that a prefix query gives. */
    private static final int PREFIX = 3;

    private final Random random;
    private final Corpus corpus;

    Questions(long seed, Corpus corpus) {
        random = new Random(seed);
        this.corpus = corpus;
    }

    List<String> next(int count) {
        List<String> questions = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            questions.add(question(i));
        }
        return List.copyOf(questions);
    }

    private String question(int kind) {
        return switch (kind % 6) {
            case 0 -> word();
            case 1 -> "+" + word() + " +" + word() + " -" + word();
            case 2 -> word() + " " + word() + " title:" + word();
            case 3 -> phrase("");
            case 4 -> phrase("~4");
            default -> prefix();
        };
    }

    private String word() {
        return corpus.word(random.nextInt(FIRST_RANK, LAST_RANK));
    }

    /** Words that stand together somewhere. */
    private String phrase(String slop) {
        List<Corpus.Article> articles = corpus.articles();
        String[] words = articles.get(random.nextInt(articles.size())).title().split(" ");
        int at = random.nextInt(words.length - 1);
        return "title:\"" + words[at] + " " + words[at + 1].replace(".", "") + "\"" + slop;
    }

    private String prefix() {
        String word = word();
        return word.substring(0, Math.min(PREFIX, word.length())) + "*";
    }
}
