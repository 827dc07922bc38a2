import app.Application;

/** The application. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Application.start(Integer.parseInt(args[0]));
    }
}
