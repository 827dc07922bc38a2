package rows.jbb;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/** Which transaction is next: cards that are shuffled whenever all were drawn. */
final class Deck {
    /** A transaction, and how often it is in the deck: so many of 33. */
    enum Card {
        NEW_ORDER(10),
        PAYMENT(10),
        CUSTOMER_REPORT(10),
        ORDER_STATUS(1),
        DELIVERY(1),
        STOCK_LEVEL(1);

        private final int times;

        Card(int times) {
            this.times = times;
        }
    }

    private final Random random;
    private final List<Card> cards = new ArrayList<>();
    private int drawn;

    Deck(Random random) {
        this.random = random;
        for (Card card : Card.values()) {
            cards.addAll(Collections.nCopies(card.times, card));
        }
        drawn = cards.size();
    }

    Card draw() {
        if (drawn == cards.size()) {
            Collections.shuffle(cards, random);
            drawn = 0;
        }
        return cards.get(drawn++);
    }
}
