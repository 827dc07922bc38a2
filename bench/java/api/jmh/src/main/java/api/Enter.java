package api;

import dev.heapwarden.Heapwarden;
import dev.heapwarden.Scope;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.CompilerControl;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Measures the cost of entering and closing a scope, beside a thread-local that is set and removed. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@State(org.openjdk.jmh.annotations.Scope.Thread)
public class Enter {
    private static final ThreadLocal<Object> PLAIN = new ThreadLocal<>();

    /** A power of two. */
    private static final int NAMES = 16;

    private final String[] names = new String[NAMES];
    private String name;
    private String inner;
    private Runnable task;
    private Runnable wrapped;
    private final Runnable work = this::work;
    private int at;
    private int ran;

    @Setup
    public void setUp() {
        for (int i = 0; i < NAMES; i++) {
            names[i] = "tenant-" + i;
        }
        name = "tenant-42";
        inner = "tenant-43";
        task = () -> ran++;
        Heapwarden.run(name, () -> wrapped = Heapwarden.wrap(task));
    }

    /** The baseline of the other benchmarks. */
    @Benchmark
    public void threadLocalSetAndRemove() {
        PLAIN.set(name);
        PLAIN.remove();
    }

    /** As cheap as a thread-local can be had: its entry stays in the thread. */
    @Benchmark
    public void threadLocalSetTwice() {
        PLAIN.set(name);
        PLAIN.set(null);
    }

    /** A request after the other of one tenant. */
    @Benchmark
    public void sameName() {
        try (Scope scope = Heapwarden.enter(name)) {
            // Empty: the scope alone is measured.
        }
    }

    /** A request after the other, each of the next of 16 tenants. */
    @Benchmark
    public void sixteenNames() {
        at = (at + 1) & (NAMES - 1);
        try (Scope scope = Heapwarden.enter(names[at])) {
            // Empty: the scope alone is measured.
        }
    }

    /** A scope within a scope of another name: two are entered and closed. */
    @Benchmark
    public void nestedTwo() {
        try (Scope outer = Heapwarden.enter(name);
                Scope nested = Heapwarden.enter(inner)) {
            // Empty: the scopes alone are measured.
        }
    }

    /** As a program does it: the work is too large to be compiled into the scope. */
    @Benchmark
    public void sameNameAroundWork() {
        try (Scope scope = Heapwarden.enter(name)) {
            work();
        }
    }

    /** The same without an object for the scope. */
    @Benchmark
    public void runAroundWork() {
        Heapwarden.run(name, work);
    }

    /** The work alone. */
    @Benchmark
    public void workAlone() {
        work();
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private void work() {
        ran++;
    }

    /** The thread of a service: its context loader is the service's. */
    @State(org.openjdk.jmh.annotations.Scope.Thread)
    public static class InService {
        @Setup
        public void setUp() {
            ClassLoader own = new URLClassLoader("shop", new URL[0], Enter.class.getClassLoader());
            Thread.currentThread().setContextClassLoader(own);
        }
    }

    /** The thread of a tenant: it is in a scope. */
    @State(org.openjdk.jmh.annotations.Scope.Thread)
    public static class InScope {
        private Scope scope;

        @Setup
        public void setUp() {
            scope = Heapwarden.enter("tenant-42");
        }

        @TearDown
        public void tearDown() {
            scope.close();
        }
    }

    /** Whether new work may begin, before each request of a service. */
    @Benchmark
    public boolean admitsInService(InService service) {
        return Heapwarden.admits();
    }

    /** The same for a tenant. */
    @Benchmark
    public boolean admitsInScope(InScope tenant) {
        return Heapwarden.admits();
    }

    /** The agent's work at the entry of each request of a route that was met before. */
    @State(org.openjdk.jmh.annotations.Scope.Thread)
    public static class Request {
        private static final MethodHandle KNOWN =
                Asked.found("LoaderNumbers", "of", int.class, ClassLoader.class);
        private static final MethodHandle FOLD =
                Asked.found(
                        "RoutePath",
                        "fold",
                        void.class,
                        Object.class,
                        String.class,
                        CharSequence.class,
                        int.class);
        private static final MethodHandle NUMBER =
                Asked.found(
                        "ServiceRoutes",
                        "number",
                        int.class,
                        Object.class,
                        int.class,
                        Object.class);
        private static final MethodHandle CAME =
                Asked.found("Natives", "came", boolean.class, int.class);

        private final ClassLoader service =
                new URLClassLoader("shop", new URL[0], Enter.class.getClassLoader());
        private Object path;
        private Object routes;

        @Setup
        public void setUp() throws Throwable {
            if (CAME == null) {
                return;
            }
            path = made("RoutePath");
            routes = made("ServiceRoutes");
            FOLD.invokeExact(path, "GET", (CharSequence) "/catalogue/items/1234567", 0);
            Class<?> type = Class.forName("dev.heapwarden.agent.ServiceRoutes$Route", true, null);
            Constructor<?> constructor = type.getDeclaredConstructor(path.getClass(), int.class);
            constructor.setAccessible(true);
            Method put = routes.getClass().getDeclaredMethod("put", type);
            put.setAccessible(true);
            put.invoke(routes, constructor.newInstance(path, 1));
        }

        private static Object made(String name) throws ReflectiveOperationException {
            Class<?> type = Class.forName("dev.heapwarden.agent." + name, true, null);
            Constructor<?> constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            return constructor.newInstance();
        }
    }

    /** A request for any service while no door is shut: what the agent does, but for the container's getters. */
    @Benchmark
    public boolean requestAtOpenDoor(Request request) throws Throwable {
        if (Request.CAME == null) {
            return false;
        }
        int loader = (int) Request.KNOWN.invokeExact(request.service);
        CharSequence asked = "/catalogue/items/1234567";
        Request.FOLD.invokeExact(request.path, "GET", asked, 0);
        int route = (int) Request.NUMBER.invokeExact(request.routes, loader, request.path);
        return (boolean) Request.CAME.invokeExact(route);
    }

    /** The agent's questions for each request while the door of any service is shut. */
    @State(org.openjdk.jmh.annotations.Scope.Benchmark)
    public static class Asked {
        private static final MethodHandle NUMBER =
                found("LoaderNumbers", "of", int.class, ClassLoader.class);
        private static final MethodHandle KNOCK =
                found(
                        "Natives",
                        "knock",
                        long.class,
                        int.class,
                        int.class,
                        String.class,
                        String.class);

        private final ClassLoader service =
                new URLClassLoader("shop", new URL[0], Enter.class.getClassLoader());

        /**
         * A method of the agent's Java half, called with these types; those of its own are objects here. Null
         * without the agent.
         */
        static MethodHandle found(String owner, String name, Class<?> returned, Class<?>... types) {
            try {
                Class<?> asked = Class.forName("dev.heapwarden.agent." + owner, true, null);
                for (Method method : asked.getDeclaredMethods()) {
                    if (method.getName().equals(name)) {
                        method.setAccessible(true);
                        MethodType type = MethodType.methodType(returned, types);
                        return MethodHandles.lookup().unreflect(method).asType(type);
                    }
                }
                return null;
            } catch (ReflectiveOperationException withoutAgent) {
                return null;
            }
        }
    }

    /** A request for a service that is not shut while another one is, but for the container's own getters. */
    @Benchmark
    public long requestWhileAnotherDoorIsShut(Asked asked) throws Throwable {
        if (Asked.KNOCK == null) {
            return 0;
        }
        int number = (int) Asked.NUMBER.invokeExact(asked.service);
        return (long) Asked.KNOCK.invokeExact(number, 0, "GET", "/catalogue/items/1234567");
    }

    /** A task that was wrapped before. */
    @Benchmark
    public void wrappedTask() {
        wrapped.run();
    }

    /** To wrap a task and to run it: what a wrapped executor does for each. */
    @Benchmark
    public void wrapAndRun() {
        Heapwarden.wrap(task).run();
    }
}
