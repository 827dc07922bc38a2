import org.apache.jena.fuseki.main.FusekiServer;
import org.apache.jena.sparql.core.DatasetGraphFactory;

/** The server, with one dataset in memory. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        FusekiServer.create()
                .loopback(true)
                .port(Integer.parseInt(args[0]))
                .add("/held", DatasetGraphFactory.createTxnMem())
                .build()
                .start();
    }
}
