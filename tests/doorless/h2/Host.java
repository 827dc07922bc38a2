import java.util.Map;
import org.h2.tools.Server;
import victim.Protocol;

/** H2's TCP server. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Server.createTcpServer("-tcpPort", args[0], "-ifNotExists").start();
        Protocol.serve(Map.of());
        System.exit(0);
    }
}
