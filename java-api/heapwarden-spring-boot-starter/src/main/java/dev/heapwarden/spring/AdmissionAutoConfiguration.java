package dev.heapwarden.spring;

import dev.heapwarden.servlet.jakarta.AdmissionFilter;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.web.server.WebFilter;

/**
 * Puts a filter before everything else: an {@link AdmissionFilter} in an application on servlets, an
 * {@link AdmissionWebFilter} in a reactive one.
 *
 * <p>{@code heapwarden.admission.enabled = false} leaves it out. {@code heapwarden.admission.order} moves
 * it behind other filters, such as one that opens a scope for each tenant.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // Spring's types: an application requires their modules itself.
@AutoConfiguration
@ConditionalOnProperty(name = "heapwarden.admission.enabled", matchIfMissing = true)
public class AdmissionAutoConfiguration {
    private static final String ORDER = "heapwarden.admission.order";

    /** Called by Spring. */
    public AdmissionAutoConfiguration() {}

    /** The filter's order among others. */
    private static int order(Environment environment) {
        return environment.getProperty(ORDER, Integer.class, Ordered.HIGHEST_PRECEDENCE);
    }

    /** For an application on servlets. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass(Filter.class)
    static class OnServlets {
        @Bean
        @ConditionalOnMissingBean(name = "heapwardenAdmission")
        FilterRegistrationBean<AdmissionFilter> heapwardenAdmission(Environment environment) {
            FilterRegistrationBean<AdmissionFilter> filter =
                    new FilterRegistrationBean<>(new AdmissionFilter());
            filter.setName("heapwarden-admission");
            filter.setDispatcherTypes(DispatcherType.REQUEST);
            filter.setOrder(order(environment));
            return filter;
        }
    }

    /** For a reactive application. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    @ConditionalOnClass(WebFilter.class)
    static class Reactive {
        @Bean
        @ConditionalOnMissingBean
        AdmissionWebFilter heapwardenAdmission(Environment environment) {
            return new AdmissionWebFilter(order(environment));
        }
    }
}
