package dev.heapwarden.servlet.javax;

import javax.servlet.DispatcherType;
import javax.servlet.FilterRegistration;
import javax.servlet.ServletContainerInitializer;
import javax.servlet.ServletContext;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Makes the {@link AdmissionFilter} the first filter of every request: the jar among the application's
 * libraries, or the server's, is enough. Found by the container as a service; embedded containers may not
 * look for services, and Spring Boot does not.
 *
 * <p>It does nothing if the application declares the filter itself, or says so with a parameter of its
 * context: {@value #PARAMETER} = {@code off}.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // The annotations of nullness: who uses this need not have them.
public final class AdmissionInitializer implements ServletContainerInitializer {
    /** The parameter of a context with which an application does without the filter: {@value}. */
    public static final String PARAMETER = "dev.heapwarden.admission";

    private static final String NAME = "heapwarden-admission";

    /** Called by the container. */
    public AdmissionInitializer() {}

    @Override
    public void onStartup(@Nullable Set<Class<?>> classes, ServletContext context) {
        if ("off".equals(context.getInitParameter(PARAMETER)) || isDeclared(context)) {
            return;
        }
        FilterRegistration.Dynamic filter = context.addFilter(NAME, new AdmissionFilter());
        if (filter != null) {
            filter.setAsyncSupported(true);
            // Not after what the application declares, but before it.
            filter.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), false, "/*");
        }
    }

    private static boolean isDeclared(ServletContext context) {
        return context.getFilterRegistrations().values().stream()
                .anyMatch(filter -> AdmissionFilter.class.getName().equals(filter.getClassName()));
    }
}
