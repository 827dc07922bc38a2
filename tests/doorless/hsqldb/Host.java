import java.io.PrintWriter;
import java.io.Writer;
import java.util.Map;
import org.hsqldb.server.Server;
import victim.Protocol;

/** HSQLDB's server with one database in memory. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Server server = new Server();
        server.setLogWriter(new PrintWriter(Writer.nullWriter()));
        server.setPort(Integer.parseInt(args[0]));
        server.setDatabaseName(0, "loaded");
        server.setDatabasePath(0, "mem:loaded");
        server.setNoSystemExit(true);
        server.start();
        server.checkRunning(true);
        Protocol.serve(Map.of());
        System.exit(0);
    }
}
