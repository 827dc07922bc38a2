package dev.heapwarden.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.heapwarden.Heapwarden;
import org.junit.jupiter.api.Test;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.core.Ordered;

final class WithoutAgentTest {
    private static final String BEAN = "heapwardenAdmission";

    @Test
    void every_request_goes_in_on_servlets() throws Exception {
        assertFalse(Heapwarden.isActive());
        try (Site site = Site.onServlets()) {
            FilterRegistrationBean<?> filter =
                    site.context.getBean(BEAN, FilterRegistrationBean.class);
            assertEquals(Ordered.HIGHEST_PRECEDENCE, filter.getOrder());
            assertAllGoIn(site);
        }
    }

    @Test
    void every_request_goes_in_reactively() throws Exception {
        try (Site site = Site.reactive("--heapwarden.admission.order=7")) {
            assertEquals(7, site.context.getBean(BEAN, AdmissionWebFilter.class).getOrder());
            assertAllGoIn(site);
        }
    }

    private static void assertAllGoIn(Site site) throws Exception {
        for (int mib = 0; mib < 64; mib++) {
            assertEquals(200, site.get("/hold").statusCode());
        }
        assertEquals(64, site.shelf().served.get());
    }

    @Test
    void a_property_leaves_it_out() {
        try (Site site = Site.onServlets("--heapwarden.admission.enabled=false")) {
            assertFalse(site.context.containsBean(BEAN));
        }
        try (Site site = Site.reactive("--heapwarden.admission.enabled=false")) {
            assertFalse(site.context.containsBean(BEAN));
        }
    }
}
