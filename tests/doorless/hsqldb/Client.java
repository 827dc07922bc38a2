import doorless.Loader;
import doorless.Target;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Rows of a table in memory, over one connection: to open one takes a tenth of a second. After an error it is another. */
public final class Client implements Target {
    private static final String COUNT =
            "SELECT COUNT(*) FROM HELD WHERE OCTET_LENGTH(DATA) = " + UNIT_BYTES;

    private final String url;
    private Connection open;

    private Client(String port) {
        url = "jdbc:hsqldb:hsql://127.0.0.1:" + port + "/loaded";
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0]);
        client.update("CREATE MEMORY TABLE IF NOT EXISTS HELD (ID INT PRIMARY KEY, DATA VARBINARY(40000))");
        Loader.serve(client);
    }

    private interface Work {
        long run(Connection connection) throws SQLException;
    }

    private long with(Work work) throws SQLException {
        Connection connection = taken();
        long result;
        try {
            result = work.run(connection);
        } catch (SQLException failed) {
            try {
                connection.close();
            } catch (SQLException broken) {
                failed.addSuppressed(broken);
            }
            throw failed;
        }
        synchronized (this) {
            open = connection;
        }
        return result;
    }

    /** Nobody else uses it: a call that came to no end keeps its own. */
    private Connection taken() throws SQLException {
        Connection connection;
        synchronized (this) {
            connection = open;
            open = null;
        }
        return connection == null ? DriverManager.getConnection(url, "SA", "") : connection;
    }

    private void update(String... statements) throws SQLException {
        with(
                connection -> {
                    try (Statement statement = connection.createStatement()) {
                        for (String sql : statements) {
                            statement.executeUpdate(sql);
                        }
                    }
                    return 0;
                });
    }

    @Override
    public void load(int number) throws SQLException {
        with(
                connection -> {
                    try (PreparedStatement insert =
                            connection.prepareStatement("INSERT INTO HELD VALUES (?, ?)")) {
                        insert.setInt(1, number);
                        insert.setBytes(2, new byte[UNIT_BYTES]);
                        return insert.executeUpdate();
                    }
                });
    }

    @Override
    public void delete(int number) throws SQLException {
        update("DELETE FROM HELD WHERE ID = " + number);
    }

    /** One half row by row, the other at once. */
    @Override
    public void drop() throws SQLException {
        update("DELETE FROM HELD WHERE MOD(ID, 2) = 0", "TRUNCATE TABLE HELD");
    }

    @Override
    public long count() throws SQLException {
        return with(
                connection -> {
                    try (Statement statement = connection.createStatement();
                            ResultSet result = statement.executeQuery(COUNT)) {
                        result.next();
                        return result.getLong(1);
                    }
                });
    }
}
