package victim;

import dev.heapwarden.AccountReading;
import dev.heapwarden.Admission;
import dev.heapwarden.Heapwarden;
import dev.heapwarden.Inheritance;
import dev.heapwarden.Mask;
import dev.heapwarden.MemoryQuotaExceededError;
import dev.heapwarden.Registration;
import dev.heapwarden.Scope;
import java.lang.module.Configuration;
import java.lang.module.ModuleFinder;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiFunction;
import java.util.function.Supplier;

/**
 * A program that names its tenants.
 *
 * <pre>
 * active                      whether the agent is there
 * hold SCOPE LENGTH COUNT     COUNT arrays of LENGTH, made and kept inside the scope
 * nest OUTER INNER LENGTH COUNT   as many in each: the outer's before and after the inner is open
 * wrapped SCOPE LENGTH COUNT  the same by tasks on a wrapped executor and the stages of a future
 * inherit SCOPE LENGTH COUNT  the same by a thread that was started in the scope, and is told to inherit
 * alone SCOPE LENGTH COUNT    the same by a thread that was started in the scope, and is not
 * virtual GROUPS LENGTH COUNT COUNT virtual threads, or as many tasks of 500 platform threads on JDKs
 *                             without, each in one of GROUPS scopes "v0"…, each keeping an
 *                             array of LENGTH (and as many bytes more as its group's number, times 1000)
 * leak SCOPE MIB              until refused or MIB are held, some 50 MiB a second; says which
 * masked SCOPE MIB            the same in a masked section, in a scope that is over its limit
 * probe SCOPE                 work of a scope over its limit is let in; how many KiB fresh threads make in the
 *                             scope, until refused: one that is not of this work; one that runs a task of it,
 *                             512 at the most; one that enters it; and one that enters it after its end
 * drop SCOPE                  lets go of what it holds
 * misuse                      closes scopes twice, out of order and on another thread
 * names PREFIX COUNT LENGTH   as many names, each entered once, with an array that is dropped
 * read ACCOUNT                what the program can read of an account
 * figures SCOPE               live bytes and objects of the scope's purse, as heapwarden-junit reads them
 * current SCOPE               the account that pays inside the scope
 * listen ACCOUNT, heard       registers a listener; what it heard so far
 * deploy NAME KIND            a service with the guest's code: "own" has a copy of the API, "shared" the
 *                             program's, "module" has it as a named module; "plugin" is no service
 *                             but code of a loader without a name, called as the program's own
 * serve NAME SCOPE MIB        the service's code holds as much more in a scope, until refused
 * admits SCOPE                whether the scope takes new work
 * admitsIn NAME SCOPE         whether the service does, and a scope of it
 * undeploy NAME               forgets it; "loaders" tells how many still exist
 * </pre>
 */
public final class ScopedTenants {
    private static final int PIECE = 64 << 10;
    /** KiB that a thread without an allowance makes at the most. */
    private static final int MADE_BY_OTHERS_KIB = 256;
    private static final Map<String, List<Object>> HELD = new HashMap<>();
    private static final Map<String, Service> SERVICES = new HashMap<>();
    private static final List<WeakReference<ClassLoader>> GONE = new ArrayList<>();
    private static final List<String> HEARD = Collections.synchronizedList(new ArrayList<>());
    private static final List<Registration> REGISTRATIONS = new ArrayList<>();
    private static volatile Object dropped;
    private static Path api;
    private static Path guest;
    private static Path guestModule;

    private ScopedTenants() {}

    private static final class Service {
        final ClassLoader loader;
        final ClassLoader context;
        final BiFunction<String, List<Object>, String> code;

        Service(ClassLoader loader) throws ReflectiveOperationException {
            this(loader, loader);
        }

        @SuppressWarnings("unchecked")
        Service(ClassLoader loader, ClassLoader context) throws ReflectiveOperationException {
            this.loader = loader;
            this.context = context;
            code =
                    (BiFunction<String, List<Object>, String>)
                            Class.forName("guest.Guest", true, loader)
                                    .getDeclaredConstructor()
                                    .newInstance();
        }
    }

    /** A loader that looks into itself first, as those of web applications do. */
    private static final class OwnFirst extends URLClassLoader {
        OwnFirst(String name, URL[] urls) {
            super(name, urls, ScopedTenants.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known == null && !name.startsWith("java.")) {
                    try {
                        known = findClass(name);
                    } catch (ClassNotFoundException elsewhere) {
                        known = null;
                    }
                }
                return known != null ? known : super.loadClass(name, resolve);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        api = Path.of(args[0]);
        guest = Path.of(args[1]);
        guestModule = Path.of(args[2]);
        Layout.crossCheck();
        warmUp();
        Map<String, Protocol.Command> commands = new HashMap<>();
        commands.put("active", words -> Protocol.say("active " + Heapwarden.isActive()));
        commands.put("hold", words -> hold(words[1], words, 2));
        commands.put("nest", ScopedTenants::nest);
        commands.put("wrapped", ScopedTenants::wrapped);
        commands.put("inherit", words -> started(words, Inheritance.CHILD_THREADS));
        commands.put("alone", words -> started(words, Inheritance.NONE));
        commands.put("virtual", ScopedTenants::virtual);
        commands.put("leak", words -> leak(words[1], pieces(words[2])));
        commands.put("masked", words -> masked(words[1], pieces(words[2])));
        commands.put("probe", words -> probe(words[1]));
        commands.put("drop", words -> HELD.remove(words[1]));
        commands.put("misuse", words -> misuse());
        commands.put("names", ScopedTenants::names);
        commands.put("read", words -> read(words[1]));
        commands.put("figures", words -> figures(words[1]));
        commands.put("current", words -> current(words[1]));
        commands.put("admits", words -> admits(words[1]));
        commands.put("admitsIn", words -> admitsIn(words[1], words[2]));
        commands.put("listen", words -> listen(words[1]));
        commands.put("heard", words -> HEARD.forEach(Protocol::say));
        commands.put("deploy", words -> SERVICES.put(words[1], deploy(words[1], words[2])));
        commands.put("serve", ScopedTenants::serve);
        commands.put("undeploy", words -> undeploy(words[1]));
        commands.put("loaders", words -> loaders());
        Protocol.serve(commands);
    }

    private static int pieces(String mebibytes) {
        return Integer.parseInt(mebibytes) * ((1 << 20) / PIECE);
    }

    /** Loads and links before the tenants do, so that these allocations are not theirs. */
    private static void warmUp() throws Exception {
        for (int i = 0; i < 3; i++) {
            fill("warm", new Object[1], 0, 1, 8);
            try (Scope scope = Heapwarden.enter("warm", Inheritance.CHILD_THREADS)) {
                Thread child = new Thread(() -> fillHere(new Object[1], 0, 1, 8));
                child.start();
                child.join();
            }
        }
    }

    private static void fill(String scope, Object[] slots, int from, int to, int length) {
        try (Scope open = Heapwarden.enter(scope)) {
            fillHere(slots, from, to, length);
        }
    }

    private static void fillHere(Object[] slots, int from, int to, int length) {
        for (int i = from; i < to; i++) {
            slots[i] = new byte[length];
        }
    }

    private static Object[] slots(String scope, int count) {
        Object[] slots = new Object[count];
        HELD.computeIfAbsent(scope, absent -> new ArrayList<>()).add(slots);
        return slots;
    }

    private static void truth(String scope, int length, int count) {
        HeldObjects tally = new HeldObjects();
        tally.add(new long[] {Layout.array(1, length)}, count);
        Protocol.say(tally.line(scope));
    }

    private static void hold(String scope, String[] words, int at) {
        int length = Integer.parseInt(words[at]);
        int count = Integer.parseInt(words[at + 1]);
        fill(scope, slots(scope, count), 0, count, length);
        truth(scope, length, count);
    }

    private static void nest(String[] words) {
        int length = Integer.parseInt(words[3]);
        int count = Integer.parseInt(words[4]);
        Object[] outer = slots(words[1], count);
        Object[] inner = slots(words[2], count);
        try (Scope first = Heapwarden.enter(words[1])) {
            fillHere(outer, 0, count / 2, length);
            try (Scope second = Heapwarden.enter(words[2])) {
                fillHere(inner, 0, count, length);
            }
            fillHere(outer, count / 2, count, length);
        }
        truth(words[1], length, count);
    }

    private static void wrapped(String[] words) throws Exception {
        int length = Integer.parseInt(words[2]);
        int count = Integer.parseInt(words[3]);
        Object[] slots = slots(words[1], count);
        ExecutorService plain = Executors.newFixedThreadPool(2);
        try {
            ExecutorService executor = Heapwarden.wrap(plain);
            Executor stages = Heapwarden.wrap((Executor) plain);
            // The pool's threads, and what stages need, exist before anything is counted.
            for (int i = 0; i < 4; i++) {
                executor.submit(() -> fillHere(new Object[1], 0, 1, 8)).get();
                CompletableFuture.runAsync(() -> fillHere(new Object[1], 0, 1, 8), stages)
                        .thenRunAsync(() -> fillHere(new Object[1], 0, 1, 8), stages)
                        .get();
            }
            int half = count / 2;
            Future<?> task;
            CompletableFuture<Void> stage;
            try (Scope open = Heapwarden.enter(words[1])) {
                task = executor.submit(() -> fillHere(slots, 0, half, length));
                CompletableFuture<Void> gate = new CompletableFuture<>();
                stage = gate.thenRunAsync(() -> {}, stages);
                CompletableFuture<Void> next =
                        CompletableFuture.runAsync(
                                () -> fillHere(slots, half, count, length), stages);
                gate.complete(null);
                stage = stage.thenCombine(next, (a, b) -> a);
            }
            task.get();
            stage.get();
        } finally {
            plain.shutdown();
        }
        truth(words[1], length, count);
    }

    private static void started(String[] words, Inheritance inheritance) throws Exception {
        int length = Integer.parseInt(words[2]);
        int count = Integer.parseInt(words[3]);
        Object[] slots = slots(words[1], count);
        Thread child;
        try (Scope open = Heapwarden.enter(words[1], inheritance)) {
            child = new Thread(() -> fillHere(slots, 0, count, length));
        }
        child.start();
        child.join();
        truth(words[1], length, count);
    }

    private static void virtual(String[] words) throws Exception {
        int groups = Integer.parseInt(words[1]);
        int length = Integer.parseInt(words[2]);
        int count = Integer.parseInt(words[3]);
        Object[] slots = slots("virtual", count);
        // As few as carry virtual threads: a thread's first sample is not by chance (docs/limitations.md).
        ExecutorService threads =
                Runtime.version().feature() < 21
                        ? Executors.newFixedThreadPool(16)
                        : (ExecutorService)
                                Executors.class
                                        .getMethod("newVirtualThreadPerTaskExecutor")
                                        .invoke(null);
        for (int i = 0; i < count; i++) {
            int number = i;
            int group = i % groups;
            threads.submit(
                    () -> {
                        try (Scope scope = Heapwarden.enter("v" + group)) {
                            Thread.sleep(1);
                            fillHere(slots, number, number + 1, length + 1000 * group);
                        }
                        return null;
                    });
        }
        threads.shutdown();
        if (!threads.awaitTermination(2, java.util.concurrent.TimeUnit.MINUTES)) {
            throw new IllegalStateException("the threads do not end");
        }
        for (int group = 0; group < groups; group++) {
            int members = (count - group + groups - 1) / groups;
            truth("v" + group, length + 1000 * group, members);
        }
    }

    private static void leak(String scope, int most) {
        List<Object> held = HELD.computeIfAbsent(scope, absent -> new ArrayList<>());
        int before = held.size();
        try (Scope open = Heapwarden.enter(scope)) {
            while (held.size() - before < most) {
                held.add(new byte[PIECE]);
                pause(held.size());
            }
        } catch (MemoryQuotaExceededError refused) {
            Protocol.say("refused " + refused.account() + " " + (held.size() - before) * (long) PIECE);
            return;
        }
        Protocol.say("held " + (held.size() - before) * (long) PIECE);
    }

    /** Keeps the pace at some 50 MiB a second: what is held is to be known before it is much more. */
    private static void pause(int pieces) {
        if (pieces % 16 == 0) {
            LockSupport.parkNanos(20_000_000);
        }
    }

    private static void masked(String scope, int most) {
        List<Object> held = HELD.computeIfAbsent(scope, absent -> new ArrayList<>());
        int before = held.size();
        try (Scope open = Heapwarden.enter(scope);
                Mask mask = Heapwarden.mask()) {
            while (held.size() - before < most) {
                held.add(new byte[PIECE]);
                // The methods on its stack are to be known: until then a refusal is put off.
                pause(held.size());
            }
        } catch (MemoryQuotaExceededError refused) {
            Protocol.say("refused " + refused.account() + " " + (held.size() - before) * (long) PIECE);
            return;
        }
        Protocol.say("held " + (held.size() - before) * (long) PIECE);
    }

    private static void probe(String scope) throws Exception {
        // The methods on its stack are to be known: until then a refusal is put off.
        Supplier<Integer> other = () -> made(scope, null);
        while (onThread(other) > MADE_BY_OTHERS_KIB) {
            Thread.sleep(50);
        }
        Admission[] asked = new Admission[1];
        List<Supplier<Integer>> task = new ArrayList<>();
        while (task.isEmpty()) {
            onThread(
                    () -> {
                        try (Scope open = Heapwarden.enter(scope)) {
                            asked[0] = Heapwarden.admission();
                            if (asked[0].isProbe()) {
                                task.add(Heapwarden.wrap((Supplier<Integer>) () -> made(8)));
                            }
                        }
                        return 0;
                    });
            Thread.sleep(50);
        }
        Admission work = asked[0];
        String said = "probe " + onThread(other);
        said += " " + onThread(task.get(0));
        // One method for both: that of the second call is known by then.
        Supplier<Integer> entered = () -> made(scope, work);
        said += " " + onThread(entered);
        work.close();
        Protocol.say(said + " " + onThread(entered));
    }

    private static int onThread(Supplier<Integer> task) throws InterruptedException {
        int[] made = new int[1];
        Thread thread = new Thread(() -> made[0] = task.get());
        thread.start();
        thread.join();
        return made[0];
    }

    /** KiB made in a scope until refused, as part of work that was let in, or not. */
    private static int made(String scope, Admission work) {
        try (Scope open = Heapwarden.enter(scope)) {
            if (work == null) {
                return made(1 << 10);
            }
            try (Scope inside = work.enter()) {
                return made(1 << 10);
            }
        }
    }

    private static int made(int most) {
        int pieces = 0;
        try {
            while (pieces < most) {
                dropped = new byte[PIECE];
                pieces++;
                pause(pieces);
            }
        } catch (MemoryQuotaExceededError refused) {
            // So many, then.
        }
        return pieces * (PIECE >> 10);
    }

    private static void misuse() throws InterruptedException {
        Scope twice = Heapwarden.enter("misused");
        twice.close();
        twice.close();
        Scope outer = Heapwarden.enter("outer");
        Scope inner = Heapwarden.enter("inner");
        outer.close();
        Protocol.say("inner pays " + Heapwarden.currentAccount());
        inner.close();
        Scope here = Heapwarden.enter("here");
        Thread other = new Thread(here::close);
        other.start();
        other.join();
        Protocol.say("here pays " + Heapwarden.currentAccount());
        here.close();
        Protocol.say("then pays " + Heapwarden.currentAccount());
        for (String name : new String[] {"", " x", "_other", "a/b", "a\nb", "x".repeat(201)}) {
            try {
                Heapwarden.enter(name).close();
                Protocol.say("accepted a bad name");
            } catch (IllegalArgumentException expected) {
                Protocol.say("refused a bad name");
            }
        }
    }

    private static void names(String[] words) {
        int count = Integer.parseInt(words[2]);
        Object[] slot = new Object[1];
        for (int i = 0; i < count; i++) {
            fill(words[1] + i, slot, 0, 1, Integer.parseInt(words[3]));
        }
    }

    private static void read(String account) {
        Optional<AccountReading> reading = Heapwarden.account(account);
        Protocol.say(
                reading.map(
                                r ->
                                        "read " + r.liveBytes() + " " + r.chargedBytes() + " "
                                                + r.standardErrorBytes() + " "
                                                + r.limitBytes().orElse(-1) + " " + r.state())
                        .orElse("absent"));
    }

    private static void figures(String scope) throws ReflectiveOperationException {
        Class<?> bridge = Class.forName("dev.heapwarden.agent.Bridge", true, null);
        int purse;
        try (Scope open = Heapwarden.enter(scope)) {
            purse = (int) bridge.getMethod("purse").invoke(null);
        }
        long[] read = (long[]) bridge.getMethod("figures", int.class).invoke(null, purse);
        Protocol.say(read == null ? "none" : "figures " + read[0] + " " + read[3]);
    }

    private static void current(String scope) {
        try (Scope open = Heapwarden.enter(scope)) {
            Protocol.say("current " + Heapwarden.currentAccount());
        }
    }

    private static void admits(String scope) {
        try (Scope open = Heapwarden.enter(scope)) {
            Protocol.say("admits " + Heapwarden.admits());
        }
    }

    private static void admitsIn(String service, String scope) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(SERVICES.get(service).context);
        try {
            Protocol.say("service admits " + Heapwarden.admits());
            admits(scope);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static void listen(String account) {
        REGISTRATIONS.add(
                Heapwarden.listen(
                        account,
                        pressure ->
                                HEARD.add(
                                        pressure.kind() + " " + pressure.account() + " "
                                                + Thread.currentThread().isDaemon())));
    }

    private static Service deploy(String name, String kind) throws Exception {
        URL code = guest.toUri().toURL();
        switch (kind) {
            case "own":
                return new Service(new OwnFirst(name, new URL[] {code, api.toUri().toURL()}));
            case "shared":
                return new Service(
                        new URLClassLoader(name, new URL[] {code}, ScopedTenants.class.getClassLoader()));
            case "plugin":
                return new Service(
                        new URLClassLoader(new URL[] {code}, ScopedTenants.class.getClassLoader()),
                        ScopedTenants.class.getClassLoader());
            case "module":
                ModuleFinder finder = ModuleFinder.of(api, guestModule);
                ModuleLayer boot = ModuleLayer.boot();
                Configuration modules =
                        boot.configuration()
                                .resolve(finder, ModuleFinder.of(), Set.of("guest"));
                ModuleLayer layer =
                        boot.defineModulesWithOneLoader(
                                modules, ClassLoader.getPlatformClassLoader());
                return new Service(layer.findLoader("guest"));
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static void serve(String[] words) {
        Service service = SERVICES.get(words[1]);
        List<Object> held =
                new ArrayList<>(Collections.nCopies(pieces(words[3]), null));
        List<Object> earlier = HELD.put(words[1] + "/" + words[2], held);
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(service.context);
        String outcome;
        try {
            outcome = service.code.apply(words[2], held);
        } finally {
            thread.setContextClassLoader(before);
        }
        if (earlier != null) {
            held.add(earlier);
        }
        Protocol.say(outcome);
    }

    private static void undeploy(String name) {
        GONE.add(new WeakReference<>(SERVICES.remove(name).loader));
        HELD.keySet().removeIf(key -> key.startsWith(name + "/"));
    }

    private static void loaders() {
        long alive = GONE.stream().filter(reference -> reference.get() != null).count();
        Protocol.say("loaders " + alive + " of " + GONE.size());
    }
}
