import org.h2.tools.Server;

/** H2's TCP server. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Server.createTcpServer("-tcpPort", args[0], "-ifNotExists").start();
    }
}
