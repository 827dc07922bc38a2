package refused;

import jakarta.servlet.annotation.WebServlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code ?throw=CLASS} throws an instance of that class of the boot loader's package {@code
 * dev.heapwarden}, whose account is the path and that name; {@code ?throw=none} says how many of the threads that threw are alive.
 */
@WebServlet("/refuse")
public final class RefusedServlet extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final List<Thread> THREW = new ArrayList<>();

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        String name = request.getParameter("throw");
        if (name.equals("none")) {
            response.getWriter().println("done " + alive());
            return;
        }
        Throwable thrown = make(name, request.getRequestURI() + " " + name);
        synchronized (THREW) {
            THREW.add(Thread.currentThread());
        }
        throwAny(thrown);
    }

    private static String alive() {
        synchronized (THREW) {
            return THREW.stream().filter(Thread::isAlive).count() + " of " + THREW.size();
        }
    }

    private static Throwable make(String name, String account) {
        try {
            return (Throwable)
                    Class.forName("dev.heapwarden." + name, true, null)
                            .getConstructors()[0]
                            .newInstance(account, 270_532_608L, 268_435_456L, 4_000_000L, 1_040L);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("the agent is not there", e);
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void throwAny(Throwable thrown) throws T {
        throw (T) thrown;
    }
}
