package victim;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import java.util.Random;

/**
 * Questions to a database in memory, with answers that depend on nothing but the seed.
 *
 * <pre>
 * ask URL ROUNDS    orders, payments and questions; a line for each question: its rows, and their hash
 * </pre>
 */
public final class SqlAnswers {
    private static final int CUSTOMERS = 200;
    private static final String[] QUESTIONS = {
        "SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer ORDER BY customer",
        "SELECT c.name, o.id, o.amount, o.note FROM customers c JOIN orders o ON o.customer = c.id"
                + " WHERE o.amount > (SELECT AVG(amount) FROM orders) ORDER BY o.amount, o.id",
        "SELECT note, COUNT(DISTINCT customer) FROM orders WHERE note LIKE '%7%' GROUP BY note"
                + " HAVING COUNT(*) > 1 ORDER BY note",
        "SELECT id, amount, RANK() OVER (PARTITION BY customer ORDER BY amount DESC, id) FROM orders"
                + " ORDER BY customer, id",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
                + " SELECT i, i * i, LPAD(CAST(i AS VARCHAR), 8, '*') FROM n ORDER BY i",
        "SELECT UPPER(name), LENGTH(name), balance FROM customers ORDER BY balance, id",
    };

    private SqlAnswers() {}

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(Map.of("ask", words -> ask(words[1], Integer.parseInt(words[2]))));
    }

    private static void ask(String url, int rounds) throws SQLException {
        Random random = new Random(7);
        try (Connection connection = DriverManager.getConnection(url)) {
            prepare(connection);
            int refused = 0;
            for (int round = 0; round < rounds; round++) {
                refused += round(connection, random, round);
                for (String question : QUESTIONS) {
                    Protocol.say(answer(connection, question));
                }
            }
            // Errors come through the database's own handlers.
            Protocol.say("refused " + refused);
        }
    }

    private static void prepare(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(
                    "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40),"
                            + " balance DECIMAL(12, 2) CHECK (balance > -5000))");
            statement.execute(
                    "CREATE TABLE orders (id IDENTITY PRIMARY KEY, customer INT REFERENCES customers,"
                            + " amount DECIMAL(12, 2), note VARCHAR(40))");
            statement.execute("CREATE INDEX by_amount ON orders (amount)");
        }
        String sql = "INSERT INTO customers VALUES (?, ?, 0)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int id = 0; id < CUSTOMERS; id++) {
                statement.setInt(1, id);
                statement.setString(2, "customer " + Integer.toString(id * 7919, 36));
                statement.addBatch();
            }
            statement.executeBatch();
        }
    }

    /** Orders with their payments, some of which the database refuses and which are rolled back. */
    private static int round(Connection connection, Random random, int round) throws SQLException {
        int refused = 0;
        connection.setAutoCommit(false);
        try (PreparedStatement order =
                        connection.prepareStatement(
                                "INSERT INTO orders (customer, amount, note) VALUES (?, ?, ?)");
                PreparedStatement payment =
                        connection.prepareStatement(
                                "UPDATE customers SET balance = balance - ? WHERE id = ?")) {
            for (int at = 0; at < 400; at++) {
                int customer = random.nextInt(CUSTOMERS);
                int amount = random.nextInt(900) + 1;
                try {
                    order.setInt(1, customer);
                    order.setInt(2, amount);
                    order.setString(3, "order " + at % 97 + " of " + round % 3);
                    order.executeUpdate();
                    payment.setInt(1, amount);
                    payment.setInt(2, customer);
                    payment.executeUpdate();
                    connection.commit();
                } catch (SQLException e) {
                    connection.rollback();
                    refused++;
                }
            }
        }
        connection.setAutoCommit(true);
        return refused;
    }

    private static String answer(Connection connection, String question) throws SQLException {
        long hash = 0;
        int rows = 0;
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(question)) {
            int columns = result.getMetaData().getColumnCount();
            while (result.next()) {
                rows++;
                for (int column = 1; column <= columns; column++) {
                    hash = hash * 31 + result.getString(column).hashCode();
                }
            }
        }
        return "answer " + rows + " " + Long.toHexString(hash);
    }
}
