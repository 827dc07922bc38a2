package tenants;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.MemoryQuotaExceededError;
import dev.heapwarden.PressureListener;
import dev.heapwarden.Scope;
import jakarta.servlet.annotation.WebServlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A web application that names its tenants: {@code ?do=hold&scope=…&length=…&count=…}, {@code
 * ?do=leak&scope=…} until refused, {@code ?do=drop}, {@code ?do=gc}. It registers a listener and does
 * not take it back: that is not to keep the application alive.
 */
@WebServlet("/tenants")
public final class TenantsServlet extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final List<Object> HELD = new ArrayList<>();
    private static final AtomicInteger HEARD = new AtomicInteger();
    private static final PressureListener COUNTING = pressure -> HEARD.incrementAndGet();

    static {
        Heapwarden.listen(COUNTING);
    }

    /** Made by the server. */
    public TenantsServlet() {}

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        String outcome = "done";
        switch (String.valueOf(request.getParameter("do"))) {
            case "hold":
                hold(
                        request.getParameter("scope"),
                        Integer.parseInt(request.getParameter("length")),
                        Integer.parseInt(request.getParameter("count")));
                break;
            case "leak":
                outcome = leak(request.getParameter("scope"));
                break;
            case "drop":
                synchronized (HELD) {
                    HELD.clear();
                }
                break;
            case "gc":
                System.gc();
                break;
            default:
                response.sendError(400);
                return;
        }
        response.getWriter().println(outcome);
    }

    private static void hold(String scope, int length, int count) {
        Object[] slots = new Object[count];
        try (Scope open = Heapwarden.enter(scope)) {
            for (int i = 0; i < count; i++) {
                slots[i] = new byte[length];
            }
        }
        synchronized (HELD) {
            HELD.add(slots);
        }
    }

    private static String leak(String scope) {
        List<Object> pieces = new ArrayList<>(10_000);
        try (Scope open = Heapwarden.enter(scope)) {
            for (int i = 0; i < 4_000; i++) {
                pieces.add(new byte[1 << 16]);
                // Not so fast that it has all before a collection shows what it holds.
                if (i % 4 == 0) {
                    Thread.sleep(5);
                }
                // Far over its limit; on a slow machine it might have all before that is known.
                for (int waits = 0; i == 1_200 && Heapwarden.admits() && waits < 1_000; waits++) {
                    Thread.sleep(20);
                }
            }
            return "done, never refused";
        } catch (InterruptedException interrupted) {
            return "done, interrupted";
        } catch (MemoryQuotaExceededError refused) {
            ClassLoader home = MemoryQuotaExceededError.class.getClassLoader();
            String copy =
                    home == null
                            ? "boot"
                            : home == TenantsServlet.class.getClassLoader() ? "own" : "shared";
            return "done, refused " + refused.account() + " by the " + copy + " class";
        }
    }
}
