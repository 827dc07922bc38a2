import doorless.Loader;
import doorless.Target;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Rows of a table in memory. Each is a connection of its own, as from many clients. */
public final class Client implements Target {
    private static final String COUNT =
            "SELECT COUNT(*) FROM HELD WHERE LENGTH(DATA) = " + UNIT_BYTES;

    private final String url;

    private Client(String port) {
        url = "jdbc:h2:tcp://127.0.0.1:" + port + "/mem:loaded;DB_CLOSE_DELAY=-1";
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0]);
        client.update("CREATE TABLE IF NOT EXISTS HELD (ID INT PRIMARY KEY, DATA VARBINARY(40000))");
        Loader.serve(client);
    }

    private Connection connect() throws SQLException {
        return DriverManager.getConnection(url, "sa", "");
    }

    private void update(String sql) throws SQLException {
        try (Connection connection = connect();
                Statement statement = connection.createStatement()) {
            statement.executeUpdate(sql);
        }
    }

    @Override
    public void load(int number) throws SQLException {
        try (Connection connection = connect();
                PreparedStatement insert =
                        connection.prepareStatement("INSERT INTO HELD VALUES (?, ?)")) {
            insert.setInt(1, number);
            insert.setBytes(2, new byte[UNIT_BYTES]);
            insert.executeUpdate();
        }
    }

    @Override
    public void delete(int number) throws SQLException {
        update("DELETE FROM HELD WHERE ID = " + number);
    }

    @Override
    public void drop() throws SQLException {
        update("TRUNCATE TABLE HELD");
    }

    @Override
    public long count() throws SQLException {
        try (Connection connection = connect();
                Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(COUNT)) {
            result.next();
            return result.getLong(1);
        }
    }
}
