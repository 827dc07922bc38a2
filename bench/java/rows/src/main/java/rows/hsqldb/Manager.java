package rows.hsqldb;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import rows.Checksum;

/** Questions about the bank: joins, groups, sorts. All have their answer in one order only. */
final class Manager {
    private static final String[] QUESTIONS = {
        "SELECT b.id, COUNT(*), SUM(h.delta), MAX(h.delta) FROM branches b JOIN history h"
                + " ON h.branch = b.id GROUP BY b.id ORDER BY b.id",
        "SELECT t.id, t.balance, b.balance FROM tellers t JOIN branches b ON b.id = t.branch"
                + " WHERE t.balance > 0 ORDER BY t.balance DESC, t.id",
        "SELECT h.account, COUNT(*) AS times, SUM(h.delta) FROM history h GROUP BY h.account"
                + " HAVING COUNT(*) > 1 ORDER BY times DESC, h.account LIMIT 100",
        "SELECT h.moment, a.balance FROM history h JOIN accounts a ON a.id = h.account"
                + " WHERE h.delta < -900000 AND a.balance < 0 ORDER BY a.balance, h.moment LIMIT 100"
    };

    private final List<PreparedStatement> statements = new ArrayList<>();

    Manager(Connection connection) throws SQLException {
        for (String question : QUESTIONS) {
            statements.add(connection.prepareStatement(question));
        }
    }

    int questions() {
        return QUESTIONS.length;
    }

    void ask(Checksum answers) throws SQLException {
        for (PreparedStatement statement : statements) {
            try (ResultSet result = statement.executeQuery()) {
                int columns = result.getMetaData().getColumnCount();
                while (result.next()) {
                    for (int column = 1; column <= columns; column++) {
                        answers.add(result.getLong(column));
                    }
                }
            }
        }
    }
}
