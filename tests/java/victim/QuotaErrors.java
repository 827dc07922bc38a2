package victim;

import dev.heapwarden.AllocationRefusedError;
import dev.heapwarden.MemoryQuotaExceeded;
import dev.heapwarden.MemoryQuotaExceededError;
import dev.heapwarden.MemoryQuotaExceededException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Function;

/**
 * Tests a program's view of the errors of a refusal: one class each, whichever loader asks, whose
 * instances tell what they were made with. Argument: a folder with {@code tenant.Catcher}, which has
 * all of them in its {@code catch} clauses.
 */
public final class QuotaErrors {
    private static final List<Class<?>> CLASSES =
            List.of(
                    MemoryQuotaExceeded.class,
                    MemoryQuotaExceededError.class,
                    AllocationRefusedError.class,
                    MemoryQuotaExceededException.class);

    private QuotaErrors() {}

    public static void main(String[] args) throws Exception {
        URL[] code = {Path.of(args[0]).toUri().toURL()};
        ClassLoader system = ClassLoader.getSystemClassLoader();
        try (URLClassLoader parentless = new URLClassLoader(code, null);
                URLClassLoader childFirst = new ChildFirst(code, system)) {
            ClassLoader[] loaders = {
                null, ClassLoader.getPlatformClassLoader(), system, parentless, childFirst
            };
            for (ClassLoader loader : loaders) {
                check(loader);
            }
            checkCaught(parentless);
            checkCaught(childFirst);
        }
        ModuleLayer.boot().findModule("quota.module").ifPresent(QuotaErrors::checkModule);
        checkText();
        checkSerial();
        System.out.println("all loaders agree");
    }

    /** Looks into itself first, as the loaders of Tomcat and Jetty do. */
    private static final class ChildFirst extends URLClassLoader {
        ChildFirst(URL[] code, ClassLoader parent) {
            super(code, parent);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null) {
                    return known;
                }
                try {
                    return findClass(name);
                } catch (ClassNotFoundException | SecurityException e) {
                    return super.loadClass(name, resolve);
                }
            }
        }
    }

    private static void check(ClassLoader loader) throws ClassNotFoundException {
        for (Class<?> expected : CLASSES) {
            Class<?> found = Class.forName(expected.getName(), false, loader);
            expect(found == expected, loader + " has another " + expected);
            expect(found.getClassLoader() == null, found + " is not the boot loader's");
        }
    }

    @SuppressWarnings("unchecked")
    private static void checkCaught(ClassLoader loader) throws ReflectiveOperationException {
        Object catcher =
                Class.forName("tenant.Catcher", true, loader)
                        .getDeclaredConstructor()
                        .newInstance();
        expect(catcher.getClass().getClassLoader() == loader, "the catcher is not " + loader + "'s");
        Function<Throwable, String> caught = (Function<Throwable, String>) catcher;
        expectEqual("oom shop", caught.apply(new MemoryQuotaExceededError("shop", 4, 3, 2, 1)));
        expectEqual("error shop", caught.apply(new AllocationRefusedError("shop", 4, 3, 2, 1)));
        expectEqual(
                "exception shop",
                caught.apply(new MemoryQuotaExceededException("shop", 4, 3, 2, 1)));
    }

    private static void checkModule(Module module) {
        try {
            check(module.getClassLoader());
            for (Class<?> expected : CLASSES) {
                Class<?> inside = Class.forName("quota.Inside", true, module.getClassLoader());
                expect(inside.getModule() == module, "quota.Inside is not in the module");
                Object found = inside.getMethod("find", String.class).invoke(null, expected.getName());
                expect(found == expected, module + " has another " + expected);
            }
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
        System.out.println("seen from " + module);
    }

    private static void checkText() {
        expectEqual(
                "account \"shop\" is over its memory limit: holds 270532608 bytes (258.0 MiB), "
                        + "standard error 4000000 bytes (3.8 MiB), "
                        + "limit 268435456 bytes (256.0 MiB); refused an object of 24 bytes",
                new MemoryQuotaExceededError("shop", 270_532_608, 268_435_456, 4_000_000, 24)
                        .getMessage());
        String largest =
                new AllocationRefusedError("a", Long.MAX_VALUE, 1023, 0, 1024).getMessage();
        expect(largest.contains("holds 9223372036854775807 bytes (7.9 EiB)"), largest);
        expect(largest.contains("limit 1023 bytes;"), largest);
        expect(largest.contains("object of 1024 bytes (1.0 KiB)"), largest);
        expectEqual(
                "a memory account is over its limit; there was no room to say which",
                new MemoryQuotaExceededException(null, 0, 0, 0, 0).getMessage());
    }

    private static void checkSerial() throws IOException, ClassNotFoundException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(new MemoryQuotaExceededError("shop", 4, 3, 2, 1));
        }
        try (ObjectInputStream in =
                new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            MemoryQuotaExceeded read = (MemoryQuotaExceeded) in.readObject();
            long[] figures = {
                read.liveBytes(),
                read.limitBytes(),
                read.standardErrorBytes(),
                read.requestedBytes()
            };
            expectEqual("shop 4 3 2 1", read.account() + " " + join(figures));
        }
    }

    private static String join(long[] figures) {
        StringBuilder text = new StringBuilder();
        for (long figure : figures) {
            text.append(figure).append(' ');
        }
        return text.toString().trim();
    }

    private static void expectEqual(String expected, String found) {
        expect(expected.equals(found), "expected " + expected + ", found " + found);
    }

    private static void expect(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
