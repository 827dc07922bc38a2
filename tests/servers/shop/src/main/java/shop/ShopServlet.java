package shop;

import jakarta.servlet.annotation.WebServlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/**
 * {@code ?do=hold&length=…&count=…}, {@code ?do=drop}, {@code ?do=gc}; {@code ?do=level&bytes=…} holds
 * so many bytes, as exactly as crates allow, and says how many.
 */
@WebServlet("/shelf")
public final class ShopServlet extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final Shelf SHELF = new Shelf();

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        switch (String.valueOf(request.getParameter("do"))) {
            case "hold":
                SHELF.hold(
                        Integer.parseInt(request.getParameter("length")),
                        Integer.parseInt(request.getParameter("count")));
                break;
            case "level":
                long bytes = SHELF.level(Long.parseLong(request.getParameter("bytes")));
                response.getWriter().println("done " + bytes);
                return;
            case "drop":
                SHELF.drop();
                break;
            case "gc":
                System.gc();
                break;
            default:
                response.sendError(HttpServletResponse.SC_BAD_REQUEST);
                return;
        }
        response.getWriter().println("done");
    }
}
