package storm;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Locale;
import java.util.Properties;
import java.util.Random;
import java.util.function.LongFunction;
import org.h2.Driver;

/** Accounts and transfers in a database of its own, which lives as long as the one connection. */
public final class Bank implements LongFunction<String> {
    private static final int ACCOUNTS = 60;
    private static final int TRANSFERS = 80;

    @Override
    public String apply(long seed) {
        try (Connection connection = new Driver().connect("jdbc:h2:mem:", new Properties())) {
            open(connection);
            transfer(connection, new Random(seed));
            return statement(connection);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void open(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(
                    "create table account (id int primary key, owner varchar(40) not null,"
                            + " branch int not null, cents bigint not null)");
            statement.execute("create index by_branch on account (branch, owner)");
            statement.execute(
                    "create table transfer (id int auto_increment primary key, source int,"
                            + " target int, cents bigint, note varchar)");
        }
        try (PreparedStatement insert =
                connection.prepareStatement("insert into account values (?, ?, ?, 100000)")) {
            for (int id = 0; id < ACCOUNTS; id++) {
                insert.setInt(1, id);
                insert.setString(2, "owner " + id * 7919 % ACCOUNTS);
                insert.setInt(3, id % 5);
                insert.addBatch();
            }
            insert.executeBatch();
        }
    }

    private static void transfer(Connection connection, Random random) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement take =
                        connection.prepareStatement(
                                "update account set cents = cents - ? where id = ?");
                PreparedStatement give =
                        connection.prepareStatement(
                                "update account set cents = cents + ? where id = ?");
                PreparedStatement note =
                        connection.prepareStatement(
                                "insert into transfer (source, target, cents, note)"
                                        + " values (?, ?, ?, ?)")) {
            for (int i = 0; i < TRANSFERS; i++) {
                int source = random.nextInt(ACCOUNTS);
                int target = random.nextInt(ACCOUNTS);
                long cents = random.nextInt(5_000);
                take.setLong(1, cents);
                take.setInt(2, source);
                take.executeUpdate();
                give.setLong(1, cents);
                give.setInt(2, target);
                give.executeUpdate();
                note.setInt(1, source);
                note.setInt(2, target);
                note.setLong(3, cents);
                note.setString(4, String.format(Locale.ROOT, "%08.2f for %d", cents / 100.0, i));
                note.executeUpdate();
                if (i % 10 == 9) {
                    connection.rollback();
                } else {
                    connection.commit();
                }
            }
        }
        connection.setAutoCommit(true);
    }

    private static String statement(Connection connection) throws SQLException {
        StringBuilder text = new StringBuilder();
        append(connection, "select sum(cents) from account", text);
        append(
                connection,
                "select branch, count(*), max(cents), min(owner) from account"
                        + " group by branch having count(*) > 1 order by branch",
                text);
        append(
                connection,
                "select a.owner, count(t.id), coalesce(sum(t.cents), 0) from account a"
                        + " left join transfer t on t.source = a.id and t.note like '%1%'"
                        + " group by a.id, a.owner order by 3 desc, 1 limit 12",
                text);
        append(
                connection,
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < 40)"
                        + " select sum(i * i), listagg(i, '-') within group (order by i desc) from n",
                text);
        return text.toString();
    }

    private static void append(Connection connection, String query, StringBuilder text)
            throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(query)) {
            int columns = rows.getMetaData().getColumnCount();
            while (rows.next()) {
                for (int column = 1; column <= columns; column++) {
                    text.append(rows.getString(column)).append(';');
                }
            }
        }
    }
}
