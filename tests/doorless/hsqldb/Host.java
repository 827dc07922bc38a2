import java.io.PrintWriter;
import java.io.Writer;
import org.hsqldb.server.Server;

/** HSQLDB's server with one database: its tables are in memory, and its log on disk. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Server server = new Server();
        server.setLogWriter(new PrintWriter(Writer.nullWriter()));
        server.setPort(Integer.parseInt(args[0]));
        server.setDatabaseName(0, "loaded");
        server.setDatabasePath(0, "file:" + args[1] + "/loaded;hsqldb.write_delay=false");
        server.setNoSystemExit(true);
        server.start();
        server.checkRunning(true);
    }
}
