package rows.jbb;

import java.math.BigDecimal;
import java.util.ArrayDeque;
import java.util.Deque;

/** Who orders and pays. */
final class Customer {
    /** Payments that are remembered, as a report shows. */
    private static final int PAYMENTS = 20;

    private static final int LONGEST_DATA = 500;

    final int id;
    final String first;
    final String last;
    final Address address;
    final boolean goodCredit;

    /** Part of the price that is let off. */
    final BigDecimal discount;

    private final String openingData;
    String data;

    /** The sum that the customer owes. */
    BigDecimal balance;

    BigDecimal paid;
    int deliveries;
    Order lastOrder;
    final Deque<Payment> payments = new ArrayDeque<>();

    Customer(
            int id,
            String first,
            String last,
            Address address,
            boolean goodCredit,
            BigDecimal discount,
            String data) {
        this.id = id;
        this.first = first;
        this.last = last;
        this.address = address;
        this.goodCredit = goodCredit;
        this.discount = discount;
        this.openingData = data;
    }

    void open() {
        data = openingData;
        balance = BigDecimal.ZERO;
        paid = BigDecimal.ZERO;
        deliveries = 0;
        lastOrder = null;
        payments.clear();
    }

    void pay(Payment payment) {
        balance = balance.subtract(payment.amount());
        paid = paid.add(payment.amount());
        if (payments.size() == PAYMENTS) {
            payments.removeFirst();
        }
        payments.addLast(payment);
        if (!goodCredit) {
            // Who pays badly is watched closely.
            String note = id + " " + payment.at() + " " + payment.amount() + " " + data;
            data = note.substring(0, Math.min(note.length(), LONGEST_DATA));
        }
    }

    /** A payment, and when it came. */
    record Payment(long at, BigDecimal amount) {}
}
