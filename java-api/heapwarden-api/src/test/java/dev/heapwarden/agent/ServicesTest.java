package dev.heapwarden.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.junit.jupiter.api.Test;

final class ServicesTest {
    private final Services services = new Services(new Ledger());

    /** Two that are equal are two services all the same, and nothing of theirs is called. */
    private static final class Vain extends ClassLoader {
        @Override
        public int hashCode() {
            throw new AssertionError("an application's code was called");
        }

        @Override
        public boolean equals(Object other) {
            throw new AssertionError("an application's code was called");
        }
    }

    @Test
    void the_context_loader_is_the_service() {
        ClassLoader shop = new Vain();
        ClassLoader blog = new Vain();
        Home common = new Home(new Vain());
        assertSame(services.of(shop, common), services.of(shop, common));
        assertNotSame(services.of(shop, common), services.of(blog, common));
        assertSame(shop, services.of(shop, common).loader.get());
    }

    @Test
    void without_one_the_loader_of_the_copy_is() {
        ClassLoader war = new Vain();
        Names names = services.of(Loaders.SYSTEM, new Home(war));
        assertSame(names, services.of(war, new Home(Loaders.SYSTEM)));
        assertSame(
                names, services.of(ClassLoader.getPlatformClassLoader(), new Home(war)));
    }

    @Test
    void without_either_there_is_no_service() {
        Names none = services.of(Loaders.SYSTEM, new Home(null));
        assertSame(none, services.of(Loaders.SYSTEM, new Home(Loaders.SYSTEM)));
        assertSame(null, none.loader.get());
        assertEquals(0, services.size());
    }

    @Test
    void a_loader_that_is_gone_takes_its_names_along() throws InterruptedException {
        Home none = new Home(null);
        for (int loader = 0; loader < 10; loader++) {
            services.of(new Vain(), none).make("tenant", 0);
        }
        Collected.await(
                () -> {
                    services.tidy();
                    return services.size() == 0;
                });
    }
}
