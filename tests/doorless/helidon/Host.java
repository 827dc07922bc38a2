import app.Application;
import java.util.Map;
import victim.Protocol;

/** The application. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Application.start(Integer.parseInt(args[0]));
        Protocol.serve(Map.of());
        System.exit(0);
    }
}
