package dev.heapwarden.spring;

import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.embedded.netty.NettyReactiveWebServerFactory;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** A Spring Boot application, and a client of it. */
final class Site implements AutoCloseable {
    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    final ConfigurableApplicationContext context;
    private final String port;

    private Site(ConfigurableApplicationContext context) {
        this.context = context;
        this.port = context.getEnvironment().getProperty("local.server.port");
    }

    /** On servlets, in Tomcat: the context class loader of its threads names the application. */
    static Site onServlets(String... more) {
        return new Site(run(Application.class, WebApplicationType.SERVLET, more));
    }

    /** On Netty, whose threads get the context class loader of the one that starts it. */
    static Site reactive(String... more) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(new URLClassLoader("reactive-shop", new URL[0], before));
        try {
            return new Site(run(OnNetty.class, WebApplicationType.REACTIVE, more));
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static ConfigurableApplicationContext run(
            Class<?> application, WebApplicationType type, String... more) {
        SpringApplication program = new SpringApplication(application);
        program.setWebApplicationType(type);
        List<String> arguments = new ArrayList<>(List.of(more));
        arguments.add("--server.port=0");
        arguments.add("--spring.main.banner-mode=off");
        arguments.add("--spring.jmx.enabled=false");
        return program.run(arguments.toArray(String[]::new));
    }

    Shelf shelf() {
        return context.getBean(Shelf.class);
    }

    HttpResponse<String> get(String path) throws Exception {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .timeout(Duration.ofMinutes(1))
                        .build();
        return CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
    }

    @Override
    public void close() {
        context.close();
    }

    /** An application that holds memory. */
    @RestController
    static class Shelf {
        final List<byte[]> held = Collections.synchronizedList(new ArrayList<>());
        final AtomicInteger served = new AtomicInteger();

        @GetMapping("/{order}")
        String serve(@PathVariable("order") String order) {
            served.incrementAndGet();
            if (order.equals("hold")) {
                for (int kib = 0; kib < 1_024; kib++) {
                    held.add(new byte[1_024]);
                }
            } else if (order.equals("drop")) {
                held.clear();
            }
            return "done";
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Shelf.class)
    static class Application {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Shelf.class)
    static class OnNetty {
        @Bean
        NettyReactiveWebServerFactory server() {
            return new NettyReactiveWebServerFactory(0);
        }
    }
}
