package shaded.jakarta.servlet.http;

/** A servlet by its shape: a shaded copy, whose container is nobody's code. */
public abstract class HttpServlet {
    /** One request. */
    public final void service() {
        doPost();
    }

    protected abstract void doPost();
}
