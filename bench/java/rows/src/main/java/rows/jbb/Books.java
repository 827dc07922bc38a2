package rows.jbb;

import java.math.BigDecimal;

/** The work that was done, counted apart from the warehouse's own data, which must agree with it. */
final class Books {
    private BigDecimal paid = BigDecimal.ZERO;
    private BigDecimal delivered = BigDecimal.ZERO;
    private long soldQuantity;
    private long lines;
    private long orders;
    private long deliveries;
    private final long[] ordersOfDistrict = new long[Population.DISTRICTS];

    void paid(Customer.Payment payment) {
        paid = paid.add(payment.amount());
    }

    void ordered(District district, Order order) {
        orders++;
        ordersOfDistrict[district.id - 1]++;
        for (Order.Line line : order.lines) {
            soldQuantity += line.quantity;
            lines++;
        }
    }

    void delivered(Order order) {
        delivered = delivered.add(order.total);
        deliveries++;
    }

    /**
     * Holds the warehouse against the books.
     *
     * @throws IllegalStateException when they differ
     */
    void check(Warehouse warehouse) {
        BigDecimal received = BigDecimal.ZERO;
        BigDecimal owed = BigDecimal.ZERO;
        BigDecimal paidByCustomers = BigDecimal.ZERO;
        long open = 0;
        long deliveriesToCustomers = 0;
        for (District district : warehouse.districts) {
            received = received.add(district.received);
            open += district.open.size();
            require(
                    district.nextOrder - 1 == ordersOfDistrict[district.id - 1],
                    "orders of a district");
            for (Customer customer : district.customers) {
                owed = owed.add(customer.balance);
                paidByCustomers = paidByCustomers.add(customer.paid);
                deliveriesToCustomers += customer.deliveries;
            }
        }
        long taken = 0;
        long takings = 0;
        for (Stock stock : warehouse.stock) {
            require(stock.balances(), "quantity of an item");
            taken += stock.soldQuantity;
            takings += stock.orders;
        }
        require(received.compareTo(paid) == 0, "money in the districts");
        require(warehouse.received.compareTo(paid) == 0, "money in the warehouse");
        require(paidByCustomers.compareTo(paid) == 0, "money the customers paid");
        require(owed.compareTo(delivered.subtract(paid)) == 0, "money the customers owe");
        require(open == orders - deliveries, "orders not delivered");
        require(deliveriesToCustomers == deliveries, "deliveries");
        require(taken == soldQuantity, "items sold");
        require(takings == lines, "lines of orders");
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException("the books and the warehouse differ: " + what);
        }
    }
}
