package rows;

/**
 * The user's command line, parsed.
 *
 * @param row name of the row; null if only the names are asked for
 * @param warmups null for the row's own number
 * @param iterations null for the row's own number
 * @param turns whether to wait for a line before each iteration
 */
record Arguments(
        String row, Integer warmups, Integer iterations, int threads, boolean turns, boolean list) {
    static final String USAGE =
            "usage: rows.Main ROW [--warmups W] [--iterations N] [--threads T] [--turns],"
                    + " or rows.Main --list";

    /**
     * Reads the command line.
     *
     * @throws Unsuitable when they cannot be understood
     */
    static Arguments parse(String[] words) throws Unsuitable {
        String row = null;
        Integer warmups = null;
        Integer iterations = null;
        int threads = Settings.DEFAULT_THREADS;
        boolean turns = false;
        boolean list = false;
        for (int i = 0; i < words.length; i++) {
            String word = words[i];
            switch (word) {
                case "--list" -> list = true;
                case "--turns" -> turns = true;
                case "--warmups" -> warmups = number(words, ++i, 0);
                case "--iterations" -> iterations = number(words, ++i, 1);
                case "--threads" -> threads = number(words, ++i, 1);
                default -> {
                    if (word.startsWith("--") || row != null) {
                        throw new Unsuitable(word + " is not understood; " + USAGE);
                    }
                    row = word;
                }
            }
        }
        if (row == null && !list) {
            throw new Unsuitable(USAGE);
        }
        return new Arguments(row, warmups, iterations, threads, turns, list);
    }

    private static int number(String[] words, int at, int atLeast) throws Unsuitable {
        try {
            int number = Integer.parseInt(words[at]);
            if (number >= atLeast) {
                return number;
            }
        } catch (ArrayIndexOutOfBoundsException | NumberFormatException e) {
            // Told below.
        }
        throw new Unsuitable(
                words[at - 1] + " needs a whole number of at least " + atLeast + "; " + USAGE);
    }
}
