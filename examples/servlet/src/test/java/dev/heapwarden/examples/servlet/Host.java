package dev.heapwarden.examples.servlet;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/**
 * A Tomcat with one servlet in three contexts: {@code /bare}, {@code /filtered}, {@code /valved}.
 * {@code ?throw=KIND} throws; {@code &commit} sends something first.
 */
final class Host implements AutoCloseable {
    /** Makes what the servlet throws. */
    interface Thrown {
        Throwable make();
    }

    private final Tomcat tomcat = new Tomcat();
    private final HttpClient client = HttpClient.newHttpClient();

    Host(Map<String, Thrown> kinds) throws IOException, LifecycleException {
        Logger.getLogger("org.apache").setLevel(Level.OFF);
        Path base = Files.createTempDirectory(Path.of("target").toAbsolutePath(), "host");
        tomcat.setBaseDir(base.toString());
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        context("/bare", base, kinds);
        Context filtered = context("/filtered", base, kinds);
        FilterDef filter = new FilterDef();
        filter.setFilterName("quota");
        filter.setFilterClass(MemoryQuotaFilter.class.getName());
        filter.addInitParameter("retry-after-seconds", "7");
        filtered.addFilterDef(filter);
        FilterMap map = new FilterMap();
        map.setFilterName("quota");
        map.addURLPattern("/*");
        filtered.addFilterMap(map);
        MemoryQuotaValve valve = new MemoryQuotaValve();
        valve.setRetryAfterSeconds(8);
        context("/valved", base, kinds).getPipeline().addValve(valve);
        tomcat.start();
    }

    private Context context(String path, Path base, Map<String, Thrown> kinds) {
        Context context = tomcat.addContext(path, base.toString());
        Tomcat.addServlet(context, "thrower", new Thrower(kinds));
        context.addServletMappingDecoded("/", "thrower");
        return context;
    }

    /** The answer; throws where the server closes the connection without one. */
    HttpResponse<String> get(String path) throws IOException, InterruptedException {
        int port = tomcat.getConnector().getLocalPort();
        URI uri = URI.create("http://127.0.0.1:" + port + path);
        return client.send(
                HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
    }

    @Override
    public void close() throws LifecycleException {
        tomcat.stop();
        tomcat.destroy();
    }

    private static final class Thrower extends HttpServlet {
        private static final long serialVersionUID = 1;

        private final transient Map<String, Thrown> kinds;

        Thrower(Map<String, Thrown> kinds) {
            this.kinds = kinds;
        }

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                throws IOException {
            response.setContentType("text/plain");
            response.setHeader("ETag", "\"of what was not sent\"");
            response.getWriter().print("part");
            if (request.getParameter("commit") != null) {
                response.flushBuffer();
            }
            Thrown thrown = kinds.get(request.getParameter("throw"));
            if (thrown != null) {
                throwAny(thrown.make());
            }
        }

        @SuppressWarnings("unchecked")
        private static <T extends Throwable> void throwAny(Throwable thrown) throws T {
            throw (T) thrown;
        }
    }
}
