package rows.jbb;

import java.util.Random;

/** Random numbers some of which come more often than others: NURand of TPC-C, clause 2.1.6. */
final class Skew {
    /** The mask for items: the smallest 2^k - 1 that covers about a tenth of them, as in TPC-C. */
    private static final int ITEM_MASK = 2_047;

    private static final int ITEM_CONSTANT = 1_234;

    private Skew() {}

    /** The number of an item. */
    static int item(Random random) {
        int mixed = random.nextInt(ITEM_MASK + 1) | random.nextInt(Population.ITEMS);
        return (mixed + ITEM_CONSTANT) % Population.ITEMS;
    }
}
