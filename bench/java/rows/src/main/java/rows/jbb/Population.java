package rows.jbb;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** The company's goods and customers on its first day, made from seeds. */
final class Population {
    static final int ITEMS = 20_000;
    static final int DISTRICTS = 10;
    static final int CUSTOMERS = 60;

    /** Last names are made of three of them, as TPC-C does. */
    private static final String[] SYLLABLES = {
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"
    };

    private static final int OPENING_QUANTITY = 10;
    private static final int OPENING_QUANTITIES = 91;

    private Population() {}

    static Item[] catalogue() {
        Random random = new Random(0);
        Item[] items = new Item[ITEMS];
        for (int id = 0; id < ITEMS; id++) {
            BigDecimal price = BigDecimal.valueOf(100 + random.nextInt(9_901), 2);
            items[id] = new Item(id, text(random, 14, 24), price, text(random, 26, 50));
        }
        return items;
    }

    static Warehouse warehouse(int id, Item[] catalogue) {
        Random random = new Random(id);
        List<District> districts = new ArrayList<>();
        for (int district = 1; district <= DISTRICTS; district++) {
            List<Customer> customers = new ArrayList<>();
            for (int customer = 0; customer < CUSTOMERS; customer++) {
                customers.add(customer(random, customer));
            }
            districts.add(new District(district, address(random), rate(random, 2_000), customers));
        }
        Stock[] stock = new Stock[ITEMS];
        for (Item item : catalogue) {
            String[] info = new String[DISTRICTS];
            for (int district = 0; district < DISTRICTS; district++) {
                info[district] = text(random, 24, 24);
            }
            int quantity = OPENING_QUANTITY + random.nextInt(OPENING_QUANTITIES);
            stock[item.id()] = new Stock(item, info, text(random, 26, 50), quantity);
        }
        return new Warehouse(id, address(random), rate(random, 2_000), districts, stock);
    }

    /** The last name of that number below 1,000. */
    static String lastName(int number) {
        return SYLLABLES[number / 100] + SYLLABLES[number / 10 % 10] + SYLLABLES[number % 10];
    }

    private static Customer customer(Random random, int id) {
        return new Customer(
                id,
                text(random, 8, 16),
                lastName(id),
                address(random),
                random.nextInt(10) != 0,
                rate(random, 5_000),
                text(random, 300, 500));
    }

    private static Address address(Random random) {
        return new Address(text(random, 10, 20), text(random, 10, 20), text(random, 9, 9));
    }

    /** A part of up to so many ten-thousandths. */
    private static BigDecimal rate(Random random, int most) {
        return BigDecimal.valueOf(random.nextInt(most + 1), 4);
    }

    private static String text(Random random, int least, int most) {
        char[] letters = new char[least + random.nextInt(most - least + 1)];
        for (int i = 0; i < letters.length; i++) {
            letters[i] = (char) ('a' + random.nextInt(26));
        }
        return new String(letters);
    }
}
