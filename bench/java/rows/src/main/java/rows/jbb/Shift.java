package rows.jbb;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;

/** The transactions of one warehouse, from its first day on. */
final class Shift {
    /** One order of so many names an item that is not there, and is not taken. */
    private static final int MISTAKES = 100;

    /** How many customers of 100 are asked for by last name. */
    private static final int BY_NAME_PERCENT = 60;

    /** Orders of which the stock is looked at. */
    private static final int RECENT_ORDERS = 20;

    private final Warehouse warehouse;
    private final Random random;
    private final Deck deck;
    private final Journal journal = new Journal();
    private final Books books = new Books();
    private long at;

    /** The warehouse must be as on its first day. */
    Shift(Warehouse warehouse) throws ParserConfigurationException {
        this.warehouse = warehouse;
        random = new Random(1_000 + warehouse.id);
        deck = new Deck(random);
    }

    /**
     * Does so many transactions and returns a checksum of all that was written down.
     *
     * @throws IllegalStateException when the warehouse contradicts what was done
     */
    long work(int transactions) {
        for (at = 1; at <= transactions; at++) {
            switch (deck.draw()) {
                case NEW_ORDER -> newOrder();
                case PAYMENT -> payment();
                case CUSTOMER_REPORT -> customerReport();
                case ORDER_STATUS -> orderStatus();
                case DELIVERY -> delivery();
                case STOCK_LEVEL -> stockLevel();
            }
            journal.end();
        }
        books.check(warehouse);
        return journal.checksum();
    }

    private void newOrder() {
        District district = district();
        Customer customer = district.customers.get(random.nextInt(district.customers.size()));
        Element root = journal.begin("new-order", at);
        journal.field(root, "customer", customer.last);
        journal.field(root, "district", district.id);
        int count = 5 + random.nextInt(11);
        boolean mistaken = random.nextInt(MISTAKES) == 0;
        List<Order.Line> lines = new ArrayList<>(count);
        BigDecimal sum = BigDecimal.ZERO;
        for (int i = 0; i < count; i++) {
            Stock stock = warehouse.stock[Skew.item(random)];
            int quantity = 1 + random.nextInt(10);
            BigDecimal amount = stock.item.price().multiply(BigDecimal.valueOf(quantity));
            sum = sum.add(amount);
            lines.add(
                    new Order.Line(stock, quantity, amount, stock.districtInfo[district.id - 1]));
        }
        if (mistaken) {
            journal.field(root, "refused", "unknown item");
            return;
        }
        BigDecimal taxed = BigDecimal.ONE.add(warehouse.tax).add(district.tax);
        BigDecimal total =
                sum.multiply(BigDecimal.ONE.subtract(customer.discount))
                        .multiply(taxed)
                        .setScale(2, RoundingMode.HALF_EVEN);
        Order order = new Order(district.nextOrder, customer, at, lines, total);
        for (Order.Line line : lines) {
            line.stock.take(line.quantity);
            Element part = journal.part(root, "line");
            journal.field(part, "item", line.stock.item.name());
            journal.field(part, "quantity", line.quantity);
            journal.field(part, "amount", line.amount);
            journal.field(part, "left", line.stock.quantity);
        }
        district.add(order);
        journal.field(root, "total", total);
        books.ordered(district, order);
    }

    private void payment() {
        District district = district();
        Customer customer = customer(district);
        BigDecimal amount = BigDecimal.valueOf(100 + random.nextInt(499_901), 2);
        Customer.Payment payment = new Customer.Payment(at, amount);
        customer.pay(payment);
        district.received = district.received.add(amount);
        warehouse.received = warehouse.received.add(amount);
        books.paid(payment);
        Element root = journal.begin("payment", at);
        address(journal.part(root, "warehouse"), warehouse.address);
        address(journal.part(root, "district"), district.address);
        Element who = journal.part(root, "customer");
        journal.field(who, "name", customer.first + " " + customer.last);
        address(who, customer.address);
        journal.field(who, "balance", customer.balance);
        journal.field(root, "amount", amount);
        if (!customer.goodCredit) {
            journal.field(root, "data", customer.data);
        }
    }

    private void customerReport() {
        District district = district();
        Customer customer = customer(district);
        Element root = journal.begin("customer-report", at);
        journal.field(root, "name", customer.first + " " + customer.last);
        address(root, customer.address);
        journal.field(root, "balance", customer.balance);
        journal.field(root, "paid", customer.paid);
        journal.field(root, "deliveries", customer.deliveries);
        for (Customer.Payment payment : customer.payments) {
            Element part = journal.part(root, "payment");
            journal.field(part, "at", payment.at());
            journal.field(part, "amount", payment.amount());
        }
        if (customer.lastOrder != null) {
            lines(root, customer.lastOrder);
        }
    }

    private void orderStatus() {
        District district = district();
        Customer customer = customer(district);
        Element root = journal.begin("order-status", at);
        journal.field(root, "name", customer.first + " " + customer.last);
        journal.field(root, "balance", customer.balance);
        Order order = customer.lastOrder;
        if (order == null) {
            journal.field(root, "orders", "none");
            return;
        }
        journal.field(root, "entered", order.enteredAt);
        journal.field(root, "carrier", order.carrier);
        lines(root, order);
    }

    /** Delivers the oldest open order of each district. */
    private void delivery() {
        int carrier = 1 + random.nextInt(10);
        Element root = journal.begin("delivery", at);
        journal.field(root, "carrier", carrier);
        for (District district : warehouse.districts) {
            Order order = district.open.pollFirst();
            if (order == null) {
                continue;
            }
            order.carrier = carrier;
            for (Order.Line line : order.lines) {
                line.deliveredAt = at;
            }
            order.customer.balance = order.customer.balance.add(order.total);
            order.customer.deliveries++;
            books.delivered(order);
            Element part = journal.part(root, "delivered");
            journal.field(part, "district", district.id);
            journal.field(part, "order", order.id);
        }
    }

    /** Counts what of the newest orders is short. */
    private void stockLevel() {
        District district = district();
        int threshold = 10 + random.nextInt(11);
        Set<Stock> low = new HashSet<>();
        int from = district.nextOrder - RECENT_ORDERS;
        for (Order order : district.orders.tailMap(from).values()) {
            for (Order.Line line : order.lines) {
                if (line.stock.quantity < threshold) {
                    low.add(line.stock);
                }
            }
        }
        Element root = journal.begin("stock-level", at);
        journal.field(root, "district", district.id);
        journal.field(root, "threshold", threshold);
        journal.field(root, "low", low.size());
    }

    private District district() {
        return warehouse.districts.get(random.nextInt(warehouse.districts.size()));
    }

    private Customer customer(District district) {
        int number = random.nextInt(district.customers.size());
        if (random.nextInt(100) < BY_NAME_PERCENT) {
            return district.named(Population.lastName(number));
        }
        return district.customers.get(number);
    }

    private void lines(Element parent, Order order) {
        for (Order.Line line : order.lines) {
            Element part = journal.part(parent, "line");
            journal.field(part, "item", line.stock.item.name());
            journal.field(part, "quantity", line.quantity);
            journal.field(part, "amount", line.amount);
            journal.field(part, "info", line.districtInfo);
            journal.field(part, "delivered", line.deliveredAt);
        }
    }

    private void address(Element parent, Address address) {
        journal.field(parent, "street", address.street());
        journal.field(parent, "city", address.city());
        journal.field(parent, "zip", address.zip());
    }
}
