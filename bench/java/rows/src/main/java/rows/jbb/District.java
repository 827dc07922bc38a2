package rows.jbb;

import java.math.BigDecimal;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Part of what a warehouse serves. */
final class District {
    /** Delivered orders beyond that many are forgotten. */
    private static final int REMEMBERED_ORDERS = 200;

    final int id;
    final Address address;
    final BigDecimal tax;
    final List<Customer> customers;
    private final Map<String, List<Customer>> byLastName = new HashMap<>();

    BigDecimal received;
    int nextOrder;
    final TreeMap<Integer, Order> orders = new TreeMap<>();

    /** The orders that are not delivered yet, the oldest first. */
    final Deque<Order> open = new ArrayDeque<>();

    District(int id, Address address, BigDecimal tax, List<Customer> customers) {
        this.id = id;
        this.address = address;
        this.tax = tax;
        this.customers = customers;
        for (Customer customer : customers) {
            byLastName.computeIfAbsent(customer.last, name -> new ArrayList<>()).add(customer);
        }
        byLastName.values().forEach(named -> named.sort(Comparator.comparing(c -> c.first)));
    }

    void open() {
        received = BigDecimal.ZERO;
        nextOrder = 1;
        orders.clear();
        open.clear();
        customers.forEach(Customer::open);
    }

    void add(Order order) {
        nextOrder = order.id + 1;
        orders.put(order.id, order);
        open.addLast(order);
        order.customer.lastOrder = order;
        while (orders.size() > REMEMBERED_ORDERS && orders.firstEntry().getValue().carrier != 0) {
            orders.pollFirstEntry();
        }
    }

    /** The middle one of those of that name by first name, or null. */
    Customer named(String last) {
        List<Customer> named = byLastName.get(last);
        return named == null ? null : named.get(named.size() / 2);
    }
}
