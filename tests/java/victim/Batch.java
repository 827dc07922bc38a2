package victim;

/** Items of several kinds to be allocated in one go: {@code kind*count} words. */
final class Batch {
    private final Kind[] kinds;
    private final int[] counts;
    private final int items;

    /** Parses the words from {@code from} on. */
    Batch(String[] words, int from) {
        kinds = new Kind[words.length - from];
        counts = new int[kinds.length];
        int total = 0;
        for (int k = 0; k < kinds.length; k++) {
            int star = words[from + k].indexOf('*');
            kinds[k] = Kind.parse(words[from + k].substring(0, star));
            counts[k] = Integer.parseInt(words[from + k].substring(star + 1));
            total += counts[k];
        }
        items = total;
    }

    int items() {
        return items;
    }

    /** Allocates every item into {@code slots} from {@code at} on; allocates nothing else. */
    void fill(Object[] slots, int at) {
        int next = at;
        for (int k = 0; k < kinds.length; k++) {
            for (int i = 0; i < counts[k]; i++) {
                slots[next++] = kinds[k].make(i);
            }
        }
    }

    void tally(HeldObjects tally, long times) {
        for (int k = 0; k < kinds.length; k++) {
            tally.add(kinds[k].sizes(), times * counts[k]);
        }
    }
}
