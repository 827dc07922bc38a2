package rows.jbb;

import java.math.BigDecimal;

/** A product that the company sells, in all warehouses alike. */
record Item(int id, String name, BigDecimal price, String brand) {}
