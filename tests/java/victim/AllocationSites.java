package victim;

import com.acme.sites.Shelf;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Allocates on lines that the test knows.
 *
 * <pre>
 * keep OFTEN SELDOM GARBAGE  keeps so many items of two lines, mixed, with so much garbage of a third
 *                            line (arrays of 4 KiB); says "kept OFTEN SELDOM"
 * virtual OFTEN SELDOM 0     the same on a virtual thread
 * arrays COUNT               keeps arrays of 4 KiB
 * deep COUNT                 keeps nodes of a map that is deep in others
 * lambda COUNT               keeps what a lambda makes
 * odd COUNT                  keeps instances of a class whose name no Java source can have
 * passing LOADERS CODE       keeps what classes of so many loaders make, and drops the loaders
 * </pre>
 */
public final class AllocationSites {
    private static final int ARRAY = 4096;

    /** A name that a class file may give a class and a source file, in as many bytes as the name in the source. */
    private static final String ODD = "O\"d y'{n}=%s\t$(x)";

    private static final List<Object> KEPT = new ArrayList<>();

    private AllocationSites() {}

    public static void main(String[] args) throws Exception {
        Protocol.serve(
                Map.of(
                        "keep", AllocationSites::keep,
                        "virtual", AllocationSites::onVirtualThread,
                        "arrays", words -> arrays(Integer.parseInt(words[1])),
                        "deep", words -> Shelf.deep(Integer.parseInt(words[1])),
                        "lambda", words -> Shelf.lambda(Integer.parseInt(words[1])),
                        "odd", words -> odd(Integer.parseInt(words[1])),
                        "passing", words -> passing(Integer.parseInt(words[1]), words[2])));
    }

    private static void keep(String[] words) {
        int often = Integer.parseInt(words[1]);
        int seldom = Integer.parseInt(words[2]);
        int garbage = Integer.parseInt(words[3]);
        int kept = often + seldom;
        int made = 0;
        int seldomMade = 0;
        int thrown = 0;
        while (made < kept) {
            made++;
            if ((long) made * seldom / kept > seldomMade) {
                seldomMade++;
                Shelf.seldom();
            } else {
                Shelf.often();
            }
            for (; (long) made * garbage / kept > thrown; thrown++) {
                Shelf.garbage(ARRAY);
            }
        }
        Protocol.say("kept " + (made - seldomMade) + " " + seldomMade);
    }

    private static void onVirtualThread(String[] words) throws Exception {
        // The test is compiled for JDKs without virtual threads as well.
        Thread thread =
                (Thread)
                        Thread.class
                                .getMethod("startVirtualThread", Runnable.class)
                                .invoke(null, (Runnable) () -> keep(words));
        thread.join();
    }

    private static void arrays(int count) {
        for (int left = count; left > 0; left--) {
            Shelf.array(ARRAY);
        }
    }

    private static void odd(int count) throws ReflectiveOperationException, IOException {
        byte[] code;
        try (InputStream in =
                AllocationSites.class.getResourceAsStream("/com/acme/sites/Oddly_named_class.class")) {
            code = in.readAllBytes();
        }
        String text = new String(code, StandardCharsets.ISO_8859_1);
        text = text.replace("Oddly_named_class", ODD);
        Class<?> odd = new OwnCode().define(text.getBytes(StandardCharsets.ISO_8859_1));
        Supplier<?> maker = (Supplier<?>) odd.getConstructor().newInstance();
        for (int left = count; left > 0; left--) {
            KEPT.add(maker.get());
        }
    }

    private static void passing(int loaders, String code) throws Exception {
        URL[] path = {Path.of(code).toUri().toURL()};
        for (int left = loaders; left > 0; left--) {
            try (OwnPassing loader = new OwnPassing(path)) {
                run(loader.loadClass("com.acme.sites.Passing"), KEPT::add);
            }
        }
    }

    private static void run(Class<?> passing, Consumer<Object> keeper) throws Exception {
        passing.getMethod("accept", Object.class).invoke(passing.getConstructor().newInstance(), keeper);
    }

    /** Defines what it is given. */
    private static final class OwnCode extends ClassLoader {
        OwnCode() {
            super(AllocationSites.class.getClassLoader());
        }

        Class<?> define(byte[] code) {
            return defineClass(null, code, 0, code.length);
        }
    }

    /** Defines the one class itself, and leaves the rest to its parent. */
    private static final class OwnPassing extends URLClassLoader {
        OwnPassing(URL[] path) {
            super(path, AllocationSites.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                if (name.equals("com.acme.sites.Passing")) {
                    Class<?> own = findLoadedClass(name);
                    return own == null ? findClass(name) : own;
                }
                return super.loadClass(name, resolve);
            }
        }
    }
}
