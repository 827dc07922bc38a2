package rows.jbb;

import java.math.BigDecimal;
import java.util.List;

/** The data of one warehouse, on which one thread works. */
final class Warehouse {
    final int id;
    final Address address;
    final BigDecimal tax;
    final List<District> districts;

    /** By item. */
    final Stock[] stock;

    BigDecimal received;

    Warehouse(int id, Address address, BigDecimal tax, List<District> districts, Stock[] stock) {
        this.id = id;
        this.address = address;
        this.tax = tax;
        this.districts = districts;
        this.stock = stock;
    }

    /** As on the first day: nothing is ordered, nothing paid. */
    void open() {
        received = BigDecimal.ZERO;
        districts.forEach(District::open);
        for (Stock each : stock) {
            each.open();
        }
    }
}
