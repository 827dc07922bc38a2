package dev.heapwarden.examples.servlet;

import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletException;
import java.io.IOException;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;

/**
 * Answers 503 with {@code Retry-After} where a request was refused memory, for applications that are
 * not to be changed: {@code <Valve className="dev.heapwarden.examples.servlet.MemoryQuotaValve"/>}
 * in Tomcat's {@code conf/context.xml}, and the jar in {@code lib/}.
 *
 * <p>Belongs in a {@code Context}. Tomcat lets an {@code OutOfMemoryError} through to the connector;
 * every other throwable it catches inside the context and leaves as a request attribute, from which
 * the host makes the error page afterwards. This valve stands between the two.
 *
 * <p>Attribute {@code retryAfterSeconds}: 10 unless told.
 */
public final class MemoryQuotaValve extends ValveBase {
    private Unavailable unavailable = new Unavailable(Unavailable.RETRY_AFTER_SECONDS);

    /** For Tomcat. */
    public MemoryQuotaValve() {
        super(true);
    }

    /**
     * Sets what {@code Retry-After} says.
     *
     * @param seconds a whole number from 0 on
     */
    public void setRetryAfterSeconds(int seconds) {
        unavailable = new Unavailable(Integer.toString(seconds));
    }

    @Override
    public void invoke(Request request, Response response) throws IOException, ServletException {
        try {
            getNext().invoke(request, response);
        } catch (Throwable thrown) {
            if (!Refusals.caused(thrown) || !unavailable.answer(response)) {
                throw thrown;
            }
            return;
        }
        Object caught = request.getAttribute(RequestDispatcher.ERROR_EXCEPTION);
        if (caught instanceof Throwable
                && Refusals.caused((Throwable) caught)
                && unavailable.answer(response)) {
            request.removeAttribute(RequestDispatcher.ERROR_EXCEPTION);
        }
    }
}
