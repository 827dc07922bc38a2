package storm;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.eclipse.jetty.ee10.webapp.WebAppContext;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ContextHandlerCollection;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.util.thread.ScheduledExecutorScheduler;

/** A Jetty with two applications, {@code /shop} and {@code /neighbour}; its port is its value. */
public final class Site implements Callable<Integer> {
    @Override
    public Integer call() throws Exception {
        // The applications' loaders take the starting thread's for their parent.
        Thread starting = Thread.currentThread();
        ClassLoader before = starting.getContextClassLoader();
        starting.setContextClassLoader(Site.class.getClassLoader());
        try {
            return start();
        } finally {
            starting.setContextClassLoader(before);
        }
    }

    private static int start() throws Exception {
        // The process ends with its driver.
        QueuedThreadPool threads = new QueuedThreadPool();
        threads.setDaemon(true);
        Server server = new Server(threads, new ScheduledExecutorScheduler("timer", true), null);
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        ContextHandlerCollection contexts = new ContextHandlerCollection();
        for (String path : new String[] {"/shop", "/neighbour"}) {
            contexts.addHandler(application(path));
        }
        server.setHandler(contexts);
        server.start();
        return connector.getLocalPort();
    }

    private static WebAppContext application(String path) throws Exception {
        Path base = Files.createTempDirectory(Path.of(""), "webapp").toAbsolutePath();
        Path own = Path.of(Site.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        WebAppContext application = new WebAppContext();
        application.setContextPath(path);
        application.setBaseResourceAsPath(base);
        // The application's loader is asked before the server's, so the servlet is its own.
        application.setExtraClasspath(own.toString());
        application.setThrowUnavailableOnStartupException(true);
        application.addServlet("storm.OrdersServlet", "/orders");
        return application;
    }
}
