import doorless.Http;
import doorless.Loader;

/** Requests to the application. */
public final class Client {
    private Client() {}

    public static void main(String[] args) throws Exception {
        Loader.serve(new Http(args[0]));
    }
}
