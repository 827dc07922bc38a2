package dev.heapwarden.examples.boot;

import dev.heapwarden.Heapwarden;
import java.util.Set;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.core.task.TaskDecorator;
import org.springframework.scheduling.annotation.EnableAsync;
import jakarta.servlet.DispatcherType;

/** The application, and what connects it with Heapwarden: a filter and a decorator. */
@SpringBootApplication
@EnableAsync
public class ShopApplication {
    /** For Spring. */
    public ShopApplication() {}

    /** Starts it. */
    public static void main(String[] arguments) {
        SpringApplication.run(ShopApplication.class, arguments);
    }

    /** Before every other filter; the second half of an asynchronous request passes it too. */
    @Bean
    static FilterRegistrationBean<TenantFilter> tenantFilter(
            @Value("${shop.tenants}") Set<String> tenants) {
        var filter = new FilterRegistrationBean<>(new TenantFilter(tenants));
        filter.setOrder(Ordered.HIGHEST_PRECEDENCE);
        filter.setAsyncSupported(true);
        filter.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ASYNC);
        return filter;
    }

    /** A task that {@code @Async} hands to Spring Boot's executor runs in its submitter's scope. */
    @Bean
    static TaskDecorator inTheSubmittersScope() {
        return Heapwarden::wrap;
    }
}
