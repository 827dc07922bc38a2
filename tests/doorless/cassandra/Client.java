import com.datastax.oss.driver.api.core.AllNodesFailedException;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import doorless.Loader;
import doorless.Target;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/** Rows of a table that is truncated, by a driver of the generation 4: the one before drops its connection at a ServerError. */
public final class Client implements Target {
    private final CqlSession session;
    private final PreparedStatement insert;

    private Client(CqlSession session) {
        this.session = session;
        session.execute(
                "CREATE KEYSPACE IF NOT EXISTS loaded WITH replication ="
                        + " {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute("CREATE TABLE IF NOT EXISTS loaded.held (id int PRIMARY KEY, data blob)");
        insert = session.prepare("INSERT INTO loaded.held (id, data) VALUES (?, ?)");
    }

    public static void main(String[] args) throws Exception {
        Quiet.logging(Files.createTempDirectory(Path.of("."), "client").toAbsolutePath());
        System.setProperty("datastax-java-driver.basic.request.timeout", "8 seconds");
        Loader.serve(new Client(connected(Integer.parseInt(args[0]))));
    }

    /** The node may still be starting. */
    private static CqlSession connected(int port) throws Exception {
        for (int attempt = 0; ; attempt++) {
            try {
                return CqlSession.builder()
                        .addContactPoint(new InetSocketAddress("127.0.0.1", port))
                        .withLocalDatacenter("datacenter1")
                        .build();
            } catch (AllNodesFailedException notYet) {
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
    public void delete(int number) {
        throw new UnsupportedOperationException("a tombstone takes memory");
    }

    @Override
    public void read() {
        session.execute("SELECT data FROM loaded.held WHERE id = 0");
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
