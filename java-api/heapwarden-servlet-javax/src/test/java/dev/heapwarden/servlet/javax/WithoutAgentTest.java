package dev.heapwarden.servlet.javax;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.heapwarden.Heapwarden;
import javax.servlet.ServletContainerInitializer;
import java.nio.file.Path;
import java.util.ServiceLoader;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class WithoutAgentTest {
    @Test
    void it_is_found_as_a_service() {
        assertTrue(
                ServiceLoader.load(ServletContainerInitializer.class).stream()
                        .anyMatch(found -> found.type() == AdmissionInitializer.class));
    }

    @Test
    void every_request_goes_in(@TempDir Path folder) throws Exception {
        assertFalse(Heapwarden.isActive());
        try (Site site = new Site(folder)) {
            for (int mib = 0; mib < 64; mib++) {
                assertEquals(200, site.get("/shop/hold").statusCode());
            }
            assertEquals("done", site.get("/shop/forward").body());
            assertEquals(65 + 1, site.shop.served.get());
        }
    }

    @Test
    void the_filter_stands_first_and_once(@TempDir Path folder) throws Exception {
        try (Site site = new Site(folder)) {
            Context shop = (Context) site.tomcat.getHost().findChild("/shop");
            FilterMap[] maps = shop.findFilterMaps();
            assertEquals(2, maps.length);
            assertEquals("heapwarden-admission", maps[0].getFilterName());
            assertEquals("own", maps[1].getFilterName());
            FilterDef filter = shop.findFilterDef("heapwarden-admission");
            assertEquals("true", filter.getAsyncSupported());
        }
    }

    @Test
    void an_application_declares_it_itself_or_does_without(@TempDir Path folder)
            throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(folder.toString());
        tomcat.setPort(0);
        Context declares = tomcat.addContext("/declares", null);
        FilterDef own = new FilterDef();
        own.setFilterName("mine");
        own.setFilterClass(AdmissionFilter.class.getName());
        declares.addFilterDef(own);
        declares.addServletContainerInitializer(new AdmissionInitializer(), null);
        Context without = tomcat.addContext("/without", null);
        without.addParameter(AdmissionInitializer.PARAMETER, "off");
        without.addServletContainerInitializer(new AdmissionInitializer(), null);
        tomcat.start();
        try {
            assertEquals(1, declares.findFilterDefs().length);
            assertEquals(0, without.findFilterDefs().length);
        } finally {
            tomcat.stop();
            tomcat.destroy();
        }
    }
}
