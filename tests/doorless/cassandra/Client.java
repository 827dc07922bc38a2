import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.NoHostAvailableException;
import doorless.Loader;
import doorless.Target;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/** Rows of a table that is truncated. */
public final class Client implements Target {
    private final Session session;
    private final PreparedStatement insert;

    private Client(Session session) {
        this.session = session;
        session.execute(
                "CREATE KEYSPACE loaded WITH replication ="
                        + " {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute("CREATE TABLE loaded.held (id int PRIMARY KEY, data blob)");
        insert = session.prepare("INSERT INTO loaded.held (id, data) VALUES (?, ?)");
    }

    public static void main(String[] args) throws Exception {
        Quiet.logging(Files.createTempDirectory(Path.of("."), "client").toAbsolutePath());
        Cluster cluster =
                Cluster.builder()
                        .addContactPoint("127.0.0.1")
                        .withPort(Integer.parseInt(args[0]))
                        .withoutJMXReporting()
                        .build();
        Loader.serve(new Client(connected(cluster)));
    }

    /** The node may still be starting. */
    private static Session connected(Cluster cluster) throws Exception {
        for (int attempt = 0; ; attempt++) {
            try {
                return cluster.connect();
            } catch (NoHostAvailableException notYet) {
                if (attempt == 100) {
                    throw notYet;
                }
                Thread.sleep(200);
            }
        }
    }

    @Override
    public void load(int number) {
        session.execute(insert.bind(number, ByteBuffer.allocate(UNIT_BYTES)));
    }

    @Override
    public void drop() {
        session.execute("TRUNCATE loaded.held");
    }

    @Override
    public long count() {
        return session.execute("SELECT id FROM loaded.held").all().size();
    }
}
