package rows.jbb;

import java.math.BigDecimal;
import java.util.List;

/** An order of a customer. Times are the numbers of transactions, since a clock is never the same. */
final class Order {
    final int id;
    final Customer customer;
    final long enteredAt;
    final List<Line> lines;

    /** With tax and discount. */
    final BigDecimal total;

    /** 0 until it is delivered. */
    int carrier;

    Order(int id, Customer customer, long enteredAt, List<Line> lines, BigDecimal total) {
        this.id = id;
        this.customer = customer;
        this.enteredAt = enteredAt;
        this.lines = lines;
        this.total = total;
    }

    /** So much of one item. */
    static final class Line {
        final Stock stock;
        final int quantity;
        final BigDecimal amount;
        final String districtInfo;

        /** 0 until it is delivered. */
        long deliveredAt;

        Line(Stock stock, int quantity, BigDecimal amount, String districtInfo) {
            this.stock = stock;
            this.quantity = quantity;
            this.amount = amount;
            this.districtInfo = districtInfo;
        }
    }
}
