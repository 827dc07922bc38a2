package shop;

import dev.heapwarden.examples.servlet.MemoryQuotaFilter;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.List;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Throws as the servlet {@code refused.RefusedServlet} does; below {@code /guarded} it is filtered. */
@RestController
public class RefusedController {
    private final List<Thread> threw = new ArrayList<>();

    /** As an application registers the filter: before every other. */
    @Bean
    static FilterRegistrationBean<MemoryQuotaFilter> memoryQuota() {
        FilterRegistrationBean<MemoryQuotaFilter> filter =
                new FilterRegistrationBean<>(new MemoryQuotaFilter());
        filter.setOrder(Ordered.HIGHEST_PRECEDENCE);
        filter.addUrlPatterns("/guarded/*");
        return filter;
    }

    @GetMapping({"/refused/refuse", "/guarded/refuse"})
    public String refuse(@RequestParam("throw") String name, HttpServletRequest request)
            throws Throwable {
        if (name.equals("none")) {
            return "done " + alive();
        }
        String account = request.getRequestURI() + " " + name;
        Throwable thrown =
                (Throwable)
                        Class.forName("dev.heapwarden." + name, true, null)
                                .getConstructors()[0]
                                .newInstance(account, 270_532_608L, 268_435_456L, 4_000_000L, 1_040L);
        synchronized (threw) {
            threw.add(Thread.currentThread());
        }
        throw thrown;
    }

    private String alive() {
        synchronized (threw) {
            return threw.stream().filter(Thread::isAlive).count() + " of " + threw.size();
        }
    }
}
