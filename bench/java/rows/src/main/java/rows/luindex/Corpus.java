package rows.luindex;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * Articles of made-up words. How often a word occurs follows Zipf's law (G. K. Zipf, 1949: the frequency
 * of the word of rank r is in proportion to 1/r), as it does in natural text. The same seed gives the
 * same articles.
 */
public final class Corpus {
    private static final String[] ONSETS = {
        "b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "pl", "r", "s",
        "st", "t", "tr", "v", "w", "z"
    };
    private static final String[] NUCLEI = {"a", "ai", "e", "ea", "i", "o", "ou", "u"};
    private static final String[] CODAS = {"", "", "n", "r", "s", "t", "nd", "ck"};
    private static final String[] ENDINGS = {"", "", "", "s", "ed", "ing", "er"};
    private static final int MAX_SYLLABLES = 4;
    private static final int TITLE_WORDS = 6;
    private static final int SENTENCE_WORDS = 12;
    private static final int LEAST_BODY_WORDS = 80;
    private static final int MAX_BODY_WORDS = 240;
    private static final int DAYS = 3650;

    private final String[] words;
    private final double[] cumulative;
    private final List<Article> articles;

    /**
     * One text.
     *
     * @param day when it appeared, in days since the first
     */
    public record Article(String id, String title, String body, int day) {}

    /** Writes {@code size} articles in a language of {@code vocabulary} words. */
    public Corpus(long seed, int vocabulary, int size) {
        Random random = new Random(seed);
        words = vocabulary(random, vocabulary);
        cumulative = new double[vocabulary];
        double sum = 0;
        for (int rank = 1; rank <= vocabulary; rank++) {
            sum += 1.0 / rank;
            cumulative[rank - 1] = sum;
        }
        List<Article> written = new ArrayList<>(size);
        for (int number = 0; number < size; number++) {
            written.add(
                    new Article(
                            "article-" + number,
                            text(random, TITLE_WORDS),
                            text(random, random.nextInt(LEAST_BODY_WORDS, MAX_BODY_WORDS)),
                            random.nextInt(DAYS)));
        }
        articles = List.copyOf(written);
    }

    public List<Article> articles() {
        return articles;
    }

    /** The word that many other ones are more frequent than. */
    public String word(int rank) {
        return words[rank];
    }

    private static String[] vocabulary(Random random, int size) {
        Set<String> known = new HashSet<>();
        String[] words = new String[size];
        for (int rank = 0; rank < size; rank++) {
            String word;
            do {
                word = word(random);
            } while (!known.add(word));
            words[rank] = word;
        }
        return words;
    }

    private static String word(Random random) {
        StringBuilder word = new StringBuilder();
        for (int syllables = 1 + random.nextInt(MAX_SYLLABLES); syllables > 0; syllables--) {
            word.append(pick(random, ONSETS)).append(pick(random, NUCLEI)).append(pick(random, CODAS));
        }
        return word.append(pick(random, ENDINGS)).toString();
    }

    private static String pick(Random random, String[] parts) {
        return parts[random.nextInt(parts.length)];
    }

    private String text(Random random, int length) {
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < length; at++) {
            boolean begins = at % SENTENCE_WORDS == 0;
            if (at > 0) {
                text.append(begins ? ". " : " ");
            }
            String word = drawn(random);
            text.append(begins ? Character.toUpperCase(word.charAt(0)) : word.charAt(0));
            text.append(word, 1, word.length());
        }
        return text.append('.').toString();
    }

    /** A word by Zipf's law: inversion of the cumulative distribution. */
    private String drawn(Random random) {
        double target = random.nextDouble() * cumulative[cumulative.length - 1];
        int at = Arrays.binarySearch(cumulative, target);
        return words[at >= 0 ? at : -at - 1];
    }
}
