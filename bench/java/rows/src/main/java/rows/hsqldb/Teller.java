package rows.hsqldb;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** The transaction of TPC-B, clause 1.2. */
final class Teller {
    private final Connection connection;
    private final PreparedStatement updateAccount;
    private final PreparedStatement selectAccount;
    private final PreparedStatement updateTeller;
    private final PreparedStatement updateBranch;
    private final PreparedStatement insertHistory;

    Teller(Connection connection) throws SQLException {
        this.connection = connection;
        updateAccount =
                connection.prepareStatement("UPDATE accounts SET balance = balance + ? WHERE id = ?");
        selectAccount = connection.prepareStatement("SELECT balance FROM accounts WHERE id = ?");
        updateTeller =
                connection.prepareStatement("UPDATE tellers SET balance = balance + ? WHERE id = ?");
        updateBranch =
                connection.prepareStatement("UPDATE branches SET balance = balance + ? WHERE id = ?");
        insertHistory = connection.prepareStatement("INSERT INTO history VALUES (?, ?, ?, ?, ?)");
    }

    /** Pays into an account, or out of it; returns its balance. */
    long transact(int at, int account, int teller, int delta) throws SQLException {
        int branch = teller / (Bank.TELLERS / Bank.BRANCHES);
        update(updateAccount, delta, account);
        long balance;
        selectAccount.setInt(1, account);
        try (ResultSet result = selectAccount.executeQuery()) {
            result.next();
            balance = result.getLong(1);
        }
        update(updateTeller, delta, teller);
        update(updateBranch, delta, branch);
        insertHistory.setInt(1, teller);
        insertHistory.setInt(2, branch);
        insertHistory.setInt(3, account);
        insertHistory.setInt(4, delta);
        insertHistory.setInt(5, at);
        insertHistory.executeUpdate();
        connection.commit();
        return balance;
    }

    private static void update(PreparedStatement statement, int delta, int id)
            throws SQLException {
        statement.setInt(1, delta);
        statement.setInt(2, id);
        if (statement.executeUpdate() != 1) {
            throw new IllegalStateException("there is no row " + id);
        }
    }
}
