package dev.heapwarden.servlet.jakarta;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpFilter;
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
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** A Tomcat with two applications: {@code /shop}, which has a limit, and {@code /other}. */
final class Site implements AutoCloseable {
    static final int MIB = 1 << 20;

    final Tomcat tomcat = new Tomcat();
    final Shelf shop = new Shelf();
    final Shelf other = new Shelf();

    /** The requests that the application's own filter has seen: it is declared before ours is added. */
    final AtomicInteger filtered = new AtomicInteger();

    private final HttpClient client = HttpClient.newHttpClient();

    Site(Path folder) throws IOException, LifecycleException {
        tomcat.setBaseDir(Files.createDirectories(folder).toString());
        tomcat.setPort(0);
        tomcat.getConnector();
        add("/shop", shop);
        add("/other", other);
        tomcat.start();
    }

    private void add(String path, Shelf shelf) {
        Context context = tomcat.addContext(path, null);
        Tomcat.addServlet(context, "shelf", shelf).setAsyncSupported(true);
        context.addServletMappingDecoded("/*", "shelf");
        FilterDef own = new FilterDef();
        own.setFilterName("own");
        own.setAsyncSupported("true");
        own.setFilter(new Counting(filtered));
        context.addFilterDef(own);
        FilterMap everywhere = new FilterMap();
        everywhere.setFilterName("own");
        everywhere.addURLPattern("/*");
        context.addFilterMap(everywhere);
        context.addServletContainerInitializer(new AdmissionInitializer(), null);
    }

    HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return client.send(request("GET", path), HttpResponse.BodyHandlers.ofString());
    }

    HttpResponse<String> delete(String path) throws IOException, InterruptedException {
        return client.send(request("DELETE", path), HttpResponse.BodyHandlers.ofString());
    }

    CompletableFuture<HttpResponse<String>> getLater(String path) {
        return client.sendAsync(request("GET", path), HttpResponse.BodyHandlers.ofString());
    }

    private HttpRequest request(String method, String path) {
        int port = tomcat.getConnector().getLocalPort();
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                .method(method, HttpRequest.BodyPublishers.noBody())
                .timeout(Duration.ofMinutes(1))
                .build();
    }

    @Override
    public void close() throws LifecycleException {
        tomcat.stop();
        tomcat.destroy();
    }

    /** An application that holds memory. */
    static final class Shelf extends HttpServlet {
        private static final long serialVersionUID = 1;

        final transient List<byte[]> held = Collections.synchronizedList(new ArrayList<>());
        final AtomicInteger served = new AtomicInteger();
        final transient BlockingQueue<AsyncContext> waiting = new LinkedBlockingQueue<>();

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response)
                throws ServletException, IOException {
            served.incrementAndGet();
            String path = request.getPathInfo();
            if ("/hold".equals(path)) {
                for (int kib = 0; kib < 1_024; kib++) {
                    held.add(new byte[1_024]);
                }
            } else if ("/drop".equals(path)) {
                held.clear();
            } else if ("/wait".equals(path)) {
                AsyncContext context = request.startAsync();
                context.setTimeout(0);
                waiting.add(context);
                return;
            } else if ("/forward".equals(path)) {
                request.getRequestDispatcher("/light").forward(request, response);
                return;
            }
            response.getWriter().print("done");
        }
    }

    private static final class Counting extends HttpFilter {
        private static final long serialVersionUID = 1;

        private final AtomicInteger seen;

        Counting(AtomicInteger seen) {
            this.seen = seen;
        }

        @Override
        protected void doFilter(
                HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            seen.incrementAndGet();
            chain.doFilter(request, response);
        }
    }
}
