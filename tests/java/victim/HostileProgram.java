package victim;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Programs that try the agent: loaders that pass for others, and more of everything than usual.
 *
 * <pre>
 * impersonate NAME CLASS   a loader called NAME defines the tenant's loader class CLASS; an instance
 *                          of it is the context loader of an allocation
 * shadow NAME LIE LENGTH COUNT   arrays under a loader called NAME whose class has a field {@code name}
 *                          of its own that says LIE
 * shadowParent NAME LIE LENGTH COUNT   arrays under an unnamed child of a loader called NAME whose class
 *                          has a field {@code parent} of its own: a loader called LIE
 * flood COUNT LENGTH       COUNT named loaders without a class, each the context loader of one array
 * pend COUNT LENGTH        COUNT loaders as Tomcat's before they have resources, one array each
 * race COUNT LENGTH        COUNT named loaders, each met by two threads at the same moment
 * churn MILLISECONDS       two threads allocate and drop at once
 * load COUNT               loads and links COUNT classes of java.base that nobody has asked for yet
 * drop                     lets go of everything
 * </pre>
 */
public final class HostileProgram {
    private static final List<Object> HELD = new ArrayList<>();
    private static final ClassLoader PARENT = HostileProgram.class.getClassLoader();
    private static URL[] tenantCode;

    private HostileProgram() {}

    /** Fields that java.lang.ClassLoader has too, with other values. */
    private static final class Shadowing extends URLClassLoader {
        final String name;
        final ClassLoader parent;

        Shadowing(String realName, ClassLoader realParent, String name, ClassLoader parent) {
            super(realName, new URL[0], realParent);
            this.name = name;
            this.parent = parent;
        }
    }

    public static void main(String[] args) throws Exception {
        setTenantCode(args[0]);
        Layout.crossCheck();
        warmUp();
        Protocol.serve(
                Map.of(
                        "impersonate", words -> impersonate(words[1], words[2]),
                        "shadow", HostileProgram::shadow,
                        "shadowParent", HostileProgram::shadowParent,
                        "flood", HostileProgram::flood,
                        "pend", HostileProgram::pend,
                        "race", HostileProgram::race,
                        "churn", words -> churn(Long.parseLong(words[1])),
                        "load", words -> load(Integer.parseInt(words[1])),
                        "drop", words -> HELD.clear()));
    }

    private static void setTenantCode(String directory) throws MalformedURLException {
        tenantCode = new URL[] {Path.of(directory).toUri().toURL()};
    }

    private static void impersonate(String name, String impostor)
            throws ReflectiveOperationException {
        ClassLoader definer = new URLClassLoader(name, tenantCode, PARENT);
        Object loader =
                Class.forName(impostor, true, definer).getDeclaredConstructor().newInstance();
        hold(name, (ClassLoader) loader, 1000, 100);
        HELD.add(loader);
    }

    private static void shadow(String[] words) {
        ClassLoader loader = new Shadowing(words[1], PARENT, words[2], null);
        hold(words[1], loader, Integer.parseInt(words[3]), Integer.parseInt(words[4]));
        HELD.add(loader);
    }

    private static void shadowParent(String[] words) {
        ClassLoader real = new URLClassLoader(words[1], new URL[0], PARENT);
        ClassLoader lie = new URLClassLoader(words[2], new URL[0], PARENT);
        ClassLoader child = new Shadowing(null, real, null, lie);
        hold(words[1], child, Integer.parseInt(words[3]), Integer.parseInt(words[4]));
        HELD.add(child);
    }

    private static void flood(String[] words) {
        int count = Integer.parseInt(words[1]);
        int length = Integer.parseInt(words[2]);
        ClassLoader[] loaders = new ClassLoader[count];
        for (int i = 0; i < count; i++) {
            loaders[i] = new URLClassLoader("flood-" + i, new URL[0], PARENT);
        }
        Object[] slots = new Object[count];
        HELD.add(loaders);
        HELD.add(slots);
        // All at once, so that naming falls behind.
        for (int i = 0; i < count; i++) {
            Filler.fill(slots, i, i + 1, loaders[i], length);
        }
        sayTruth("flood", length, count);
    }

    /** Loaders whose name the agent asks for again and again, and never learns. */
    private static void pend(String[] words) throws ReflectiveOperationException {
        int count = Integer.parseInt(words[1]);
        int length = Integer.parseInt(words[2]);
        ClassLoader definer = new URLClassLoader("home-of-pending", tenantCode, PARENT);
        Constructor<?> constructor =
                Class.forName("org.apache.catalina.loader.Pending", true, definer)
                        .getDeclaredConstructor();
        Object[] slots = new Object[count];
        HELD.add(slots);
        for (int i = 0; i < count; i++) {
            ClassLoader loader = (ClassLoader) constructor.newInstance();
            HELD.add(loader);
            Filler.fill(slots, i, i + 1, loader, length);
        }
        sayTruth("pend", length, count);
    }

    private static void race(String[] words) throws InterruptedException {
        int count = Integer.parseInt(words[1]);
        int length = Integer.parseInt(words[2]);
        ClassLoader[] loaders = new ClassLoader[count];
        for (int i = 0; i < count; i++) {
            loaders[i] = new URLClassLoader("race-" + i, new URL[0], PARENT);
        }
        HELD.add(loaders);
        AtomicInteger arrived = new AtomicInteger();
        Thread[] threads = new Thread[2];
        for (int t = 0; t < threads.length; t++) {
            Object[] slots = new Object[count];
            HELD.add(slots);
            threads[t] =
                    new Thread(
                            () -> {
                                for (int i = 0; i < count; i++) {
                                    Filler.fillTogether(slots, i, loaders[i], length, arrived);
                                }
                            });
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        sayTruth("race", length, 2 * count);
    }

    /**
     * Has everything compiled that runs while a loader of the tests is the context: whoever asks
     * for a compilation resolves all string constants of the method's class, and so has them
     * charged to its context, rightly, but not by any truth told here.
     */
    private static void warmUp() {
        Object[] slots = new Object[1];
        for (int i = 0; i < 20_000; i++) {
            Filler.fill(slots, 0, 1, PARENT, 16);
            Filler.fillTogether(slots, 0, PARENT, 16, new AtomicInteger(1));
        }
    }

    private static void hold(String name, ClassLoader context, int length, int count) {
        Object[] slots = new Object[count];
        HELD.add(slots);
        Filler.fill(slots, 0, count, context, length);
        sayTruth(name, length, count);
    }

    private static void sayTruth(String name, int length, int count) {
        HeldObjects tally = new HeldObjects();
        tally.add(new long[] {Layout.array(1, length)}, count);
        Protocol.say(tally.line(name));
    }

    private static void churn(long milliseconds) throws InterruptedException {
        Thread[] threads = new Thread[2];
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> churnUntil(System.nanoTime() + milliseconds * 1_000_000));
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    /** Keeps the latest 256 arrays, so that the compiler cannot do without the allocation. */
    private static void churnUntil(long end) {
        Object[] latest = new Object[256];
        for (int i = 0; System.nanoTime() < end; i++) {
            latest[i & 255] = new byte[1000 + (i & 1023)];
        }
    }

    private static void load(int count) throws IOException {
        Path root = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules/java.base");
        List<String> names;
        try (Stream<Path> files = Files.walk(root)) {
            names =
                    files.map(file -> root.relativize(file).toString())
                            .filter(file -> file.endsWith(".class"))
                            .filter(file -> !file.endsWith("-info.class"))
                            .map(file -> file.substring(0, file.length() - 6).replace('/', '.'))
                            .collect(Collectors.toList());
        }
        int loaded = 0;
        for (String name : names) {
            if (loaded == count) {
                break;
            }
            try {
                // To ask for the methods links a class, which prepares it.
                HELD.add(Class.forName(name, false, null).getDeclaredMethods());
                loaded++;
            } catch (ClassNotFoundException | LinkageError e) {
                // Some need what this JDK was built without.
                continue;
            }
        }
        Protocol.say("loaded " + loaded);
    }
}
