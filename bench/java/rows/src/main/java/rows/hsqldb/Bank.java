package rows.hsqldb;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** The tables of TPC-B: branches, their tellers and accounts, and what happened. */
final class Bank {
    static final int BRANCHES = 10;
    static final int TELLERS = 10 * BRANCHES;
    static final int ACCOUNTS = 10_000 * BRANCHES;

    /** TPC-B wants rows of at least 100 bytes. */
    private static final String FILLER = "x".repeat(80);

    private final Connection connection;

    Bank(Connection connection) throws SQLException {
        this.connection = connection;
        try (Statement statement = connection.createStatement()) {
            statement.execute(
                    "CREATE TABLE branches (id INT PRIMARY KEY, balance BIGINT, filler VARCHAR(88))");
            statement.execute(
                    "CREATE TABLE tellers (id INT PRIMARY KEY, branch INT REFERENCES branches,"
                            + " balance BIGINT, filler VARCHAR(84))");
            statement.execute(
                    "CREATE TABLE accounts (id INT PRIMARY KEY, branch INT REFERENCES branches,"
                            + " balance BIGINT, filler VARCHAR(84))");
            statement.execute(
                    "CREATE TABLE history (teller INT, branch INT, account INT, delta INT, moment INT)");
            statement.execute("CREATE INDEX history_of_account ON history (account)");
        }
        fill("INSERT INTO branches VALUES (?, 0, ?)", BRANCHES, 0);
        fill("INSERT INTO tellers VALUES (?, ?, 0, ?)", TELLERS, TELLERS / BRANCHES);
        fill("INSERT INTO accounts VALUES (?, ?, 0, ?)", ACCOUNTS, ACCOUNTS / BRANCHES);
        connection.commit();
    }

    /** As on the first day: nobody has money, nothing has happened. */
    void open() throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("TRUNCATE TABLE history");
            for (String table : new String[] {"branches", "tellers", "accounts"}) {
                statement.executeUpdate("UPDATE " + table + " SET balance = 0 WHERE balance <> 0");
            }
        }
        connection.commit();
    }

    /**
     * Holds each table against what was paid: consistency as TPC-B, clause 2.3, wants it.
     *
     * @throws IllegalStateException when one differs
     */
    void check(long paid, long transactions) throws SQLException {
        require(paid, "SELECT SUM(balance) FROM branches");
        require(paid, "SELECT SUM(balance) FROM tellers");
        require(paid, "SELECT SUM(balance) FROM accounts");
        require(paid, "SELECT SUM(CAST(delta AS BIGINT)) FROM history");
        require(transactions, "SELECT COUNT(*) FROM history");
        require(
                0,
                "SELECT COUNT(*) FROM branches b WHERE balance <>"
                        + " (SELECT SUM(balance) FROM tellers t WHERE t.branch = b.id)");
    }

    private void require(long expected, String query) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(query)) {
            result.next();
            long value = result.getLong(1);
            if (value != expected) {
                throw new IllegalStateException(
                        query + " should give " + expected + ", and gives " + value);
            }
        }
    }

    /** Rows of which so many belong to a branch; 0 if they are branches themselves. */
    private void fill(String insert, int rows, int ofBranch) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (int id = 0; id < rows; id++) {
                int column = 1;
                statement.setInt(column++, id);
                if (ofBranch != 0) {
                    statement.setInt(column++, id / ofBranch);
                }
                statement.setString(column, FILLER);
                statement.executeUpdate();
            }
        }
    }
}
