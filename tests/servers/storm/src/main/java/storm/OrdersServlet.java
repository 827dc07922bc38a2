package storm;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Lists the orders that a seed stands for. */
public final class OrdersServlet extends HttpServlet {
    private static final long serialVersionUID = 1;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        long seed = Long.parseLong(request.getParameter("seed"));
        String text = list(seed) + " for " + request.getHeader("X-Customer");
        response.setContentType("text/plain;charset=utf-8");
        response.setHeader("X-Length", Integer.toString(text.length()));
        response.getWriter().write(text);
    }

    private static String list(long seed) {
        Random random = new Random(seed);
        Map<String, List<Integer>> orders = new TreeMap<>();
        for (int i = 0; i < 400; i++) {
            String customer = "customer-" + random.nextInt(40);
            orders.computeIfAbsent(customer, absent -> new ArrayList<>()).add(random.nextInt(9_000));
        }
        return orders.entrySet().stream()
                .map(
                        order ->
                                String.format(
                                        Locale.ROOT,
                                        "%s: %d, %.2f",
                                        order.getKey().toUpperCase(Locale.ROOT),
                                        order.getValue().size(),
                                        order.getValue().stream().mapToInt(i -> i).sum() / 100.0))
                .collect(Collectors.joining("\n"));
    }
}
