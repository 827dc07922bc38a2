package rows.jbb;

/** A warehouse's stock of one item. */
final class Stock {
    /** Below that much after an order, the warehouse gets more. */
    private static final int RESERVE = 10;

    private static final int REFILL = 91;

    final Item item;

    /** The text that is written on a parcel, by district. */
    final String[] districtInfo;

    final String data;
    private final int openingQuantity;
    int quantity;
    long soldQuantity;
    int orders;

    Stock(Item item, String[] districtInfo, String data, int openingQuantity) {
        this.item = item;
        this.districtInfo = districtInfo;
        this.data = data;
        this.openingQuantity = openingQuantity;
    }

    void open() {
        quantity = openingQuantity;
        soldQuantity = 0;
        orders = 0;
    }

    /** Takes out what is ordered. */
    void take(int ordered) {
        quantity -= ordered;
        if (quantity < RESERVE) {
            quantity += REFILL;
        }
        soldQuantity += ordered;
        orders++;
    }

    /** Whether what is there is what came in less what was sold. */
    boolean balances() {
        long refilled = quantity - (openingQuantity - soldQuantity);
        return quantity >= RESERVE && refilled >= 0 && refilled % REFILL == 0;
    }
}
