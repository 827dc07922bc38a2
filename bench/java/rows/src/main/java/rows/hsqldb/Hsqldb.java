package rows.hsqldb;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Random;
import rows.Checksum;
import rows.Row;
import rows.Settings;

/**
 * HSQLDB: transactions after the profile of TPC-B on a bank in memory, and between them the questions
 * its managers ask.
 */
public final class Hsqldb implements Row {
    private static final int TRANSACTIONS = 20_000;

    /** Questions are asked after each so many transactions. */
    private static final int BETWEEN_QUESTIONS = 1_000;

    private static final long EXPECTED = 0x43ba7f6b31a9facbL;

    private final Bank bank;
    private final Teller teller;
    private final Manager manager;

    public Hsqldb(Settings settings) throws SQLException {
        // It would take over the JVM's logging.
        System.setProperty("hsqldb.reconfig_logging", "false");
        Connection connection = DriverManager.getConnection("jdbc:hsqldb:mem:bank", "SA", "");
        connection.setAutoCommit(false);
        bank = new Bank(connection);
        teller = new Teller(connection);
        manager = new Manager(connection);
    }

    @Override
    public long operations() {
        return TRANSACTIONS + (long) TRANSACTIONS / BETWEEN_QUESTIONS * manager.questions();
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() throws SQLException {
        bank.open();
        Random random = new Random(1);
        Checksum checksum = new Checksum();
        long paid = 0;
        for (int at = 1; at <= TRANSACTIONS; at++) {
            int delta = random.nextInt(1_999_999) - 999_999;
            paid += delta;
            checksum.add(
                    teller.transact(
                            at,
                            random.nextInt(Bank.ACCOUNTS),
                            random.nextInt(Bank.TELLERS),
                            delta));
            if (at % BETWEEN_QUESTIONS == 0) {
                manager.ask(checksum);
            }
        }
        bank.check(paid, TRANSACTIONS);
        return checksum.value();
    }
}
