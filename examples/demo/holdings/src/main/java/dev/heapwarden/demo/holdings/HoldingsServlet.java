package dev.heapwarden.demo.holdings;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * The three addresses every demo application answers.
 *
 * <ul>
 *   <li>{@code GET /}: one request of its kind of work;
 *   <li>{@code GET /truth}: what it holds now, as JSON;
 *   <li>{@code POST /release}: lets go of everything it gathered.
 * </ul>
 */
public abstract class HoldingsServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;

    /** The status by which an application says that it gathers no more (RFC 4918). */
    protected static final int INSUFFICIENT_STORAGE = 507;

    /** Creates the servlet; the container then calls {@code init}. */
    protected HoldingsServlet() {}

    /**
     * Does one request's work. Called by many threads at once.
     *
     * @return the HTTP status to answer with
     */
    protected abstract int work();

    /**
     * Counts what is held. Called by many threads at once.
     *
     * @return the truth now
     */
    protected abstract Truth truth();

    /** Lets go of what was gathered. Called by many threads at once. */
    protected abstract void release();

    /**
     * A whole number of mebibytes from the application's {@code web.xml}.
     *
     * @param parameter the init parameter's name
     * @return that many bytes
     */
    protected final long mebibytes(String parameter) {
        String value = getInitParameter(parameter);
        if (value == null) {
            throw new IllegalStateException("web.xml gives no init-param " + parameter);
        }
        return Long.parseLong(value.strip()) << 20;
    }

    @Override
    protected final void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        switch (request.getServletPath()) {
            case "" -> answer(response, work(), "text/plain", "done\n");
            case "/truth" ->
                    answer(
                            response,
                            HttpServletResponse.SC_OK,
                            "application/json",
                            truth().toJson() + "\n");
            default -> response.sendError(HttpServletResponse.SC_NOT_FOUND);
        }
    }

    @Override
    protected final void doPost(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        if (!request.getServletPath().equals("/release")) {
            response.sendError(HttpServletResponse.SC_NOT_FOUND);
            return;
        }
        release();
        answer(response, HttpServletResponse.SC_OK, "text/plain", "released\n");
    }

    private static void answer(HttpServletResponse response, int status, String type, String body)
            throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        response.setStatus(status);
        response.setContentType(type);
        response.setContentLength(bytes.length);
        response.getOutputStream().write(bytes);
    }
}
