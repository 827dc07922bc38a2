package rows.jbb;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import rows.Checksum;
import rows.Crew;
import rows.Row;
import rows.Settings;
import rows.Unsuitable;

/**
 * A wholesale company in memory, after the published description of SPECjbb2005: a thread for each
 * warehouse serves its customers' orders, and the company's own work. Like it, the row counts money in
 * BigDecimal and writes each transaction down as XML. No warehouse supplies another one, so that each
 * comes to the same end whatever the others do.
 */
public final class Jbb implements Row {
    private static final int MAX_WAREHOUSES = 4;

    /** Transactions of each warehouse in one iteration. */
    private static final int TRANSACTIONS = 33 * 1_000;

    /** The checksum for each number of warehouses, from 1. */
    private static final long[] EXPECTED = {
        0x4482fd77363bcd6fL, 0xe812b3b4423c6dadL, 0xffef1848872b8942L, 0x75cac72165c2f1c7L
    };

    private final List<Warehouse> warehouses = new ArrayList<>();

    public Jbb(Settings settings) throws Unsuitable {
        if (settings.threads() > MAX_WAREHOUSES) {
            throw new Unsuitable(
                    "jbb has 1 to " + MAX_WAREHOUSES + " warehouses, not " + settings.threads());
        }
        Item[] catalogue = Population.catalogue();
        for (int number = 1; number <= settings.threads(); number++) {
            warehouses.add(Population.warehouse(number, catalogue));
        }
    }

    @Override
    public int iterations() {
        return 8;
    }

    @Override
    public long operations() {
        return (long) TRANSACTIONS * warehouses.size();
    }

    @Override
    public long expected() {
        return EXPECTED[warehouses.size() - 1];
    }

    @Override
    public long iterate() throws Exception {
        List<Callable<Long>> shifts = new ArrayList<>();
        for (Warehouse warehouse : warehouses) {
            shifts.add(
                    () -> {
                        warehouse.open();
                        return new Shift(warehouse).work(TRANSACTIONS);
                    });
        }
        Checksum checksum = new Checksum();
        Crew.run("warehouse", shifts).forEach(checksum::add);
        return checksum.value();
    }
}
