package dev.heapwarden;

import dev.heapwarden.internal.Link;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledExecutorService;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Tells the agent Heapwarden whose work a thread is doing, and reads the memory accounts that it
 * keeps.
 *
 * <pre>{@code
 * try (Scope scope = Heapwarden.enter("tenant-42")) {
 *     answer(request);
 * }
 * }</pre>
 *
 * <p>While a scope is open, what its thread allocates is charged to the scope's account: {@code
 * shop/tenant-42} in a service that is called {@code shop}, which is charged too, and plain {@code
 * tenant-42} where no service is known. The service is that of the thread's context class loader, or
 * that of the loader of this class. The innermost scope pays; scopes have no names within names.
 *
 * <p><b>Names</b> have 1 to 200 bytes of UTF-8, no control characters, no blank at either end, no
 * {@code /}, and no {@code _} at the start. A service has room for 10,000 names that hold memory or are
 * in use; further ones are charged to its account {@code _other}.
 *
 * <p><b>Without the agent</b> nothing here has any effect: tasks are run, names are checked, nothing is
 * read. It can be shipped everywhere. The agent is looked for when this class is initialised, and
 * again by {@link #isActive()}, in case it was attached to the running JVM.
 *
 * <p><b>Thread-safety.</b> Every method may be called on every thread, virtual ones too. A {@link Scope}
 * and a {@link Mask} belong to the thread that made them.
 *
 * <p><b>Cost.</b> To enter a scope that the thread was in before, and to close it, takes some
 * nanoseconds and allocates nothing, but for the {@link Scope} itself, 24 bytes, which compilers before
 * JDK 22 leave out around small bodies only ({@link #run} and {@link #call} need none); a name that is new to the thread costs a look-up in a table,
 * and one that is new to the service some microseconds. Without the agent the names are checked,
 * nothing more.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // The annotations of nullness: who uses this need not have them.
public final class Heapwarden {
    private Heapwarden() {}

    /**
     * Enters a scope on the calling thread, {@link Inheritance#NONE}.
     *
     * <p>At most 64 can be open on a thread: beyond that the scope returned does nothing, which is
     * counted and logged.
     *
     * @param name the scope's name, such as that of a tenant
     * @return the scope, to be closed on this thread
     * @throws IllegalArgumentException if no scope may have this name, with the agent or without it
     */
    public static Scope enter(String name) {
        return new Scope(open(name, false));
    }

    /**
     * As {@link #enter(String)}, with a choice of what threads inherit.
     *
     * @param name the scope's name
     * @param inheritance whether threads that this one makes in the scope belong to it
     * @return the scope, to be closed on this thread
     * @throws IllegalArgumentException if no scope may have this name, with the agent or without it
     */
    public static Scope enter(String name, Inheritance inheritance) {
        Objects.requireNonNull(inheritance, "inheritance");
        return new Scope(open(name, inheritance == Inheritance.CHILD_THREADS));
    }

    /**
     * Runs a task in a scope.
     *
     * @param name the scope's name
     * @param task runs on the calling thread
     * @throws IllegalArgumentException if no scope may have this name; the task does not run
     */
    public static void run(String name, Runnable task) {
        Objects.requireNonNull(task, "task");
        long token = open(name, false);
        try {
            task.run();
        } finally {
            Link.close(token);
        }
    }

    /**
     * Calls a task in a scope.
     *
     * @param <T> what the task returns
     * @param name the scope's name
     * @param task runs on the calling thread
     * @return what the task returned
     * @throws IllegalArgumentException if no scope may have this name; the task does not run
     * @throws Exception what the task threw
     */
    public static <T extends @Nullable Object> T call(String name, Callable<T> task)
            throws Exception {
        Objects.requireNonNull(task, "task");
        long token = open(name, false);
        try {
            return task.call();
        } finally {
            Link.close(token);
        }
    }

    /**
     * Takes the scope that the calling thread is in along to wherever the task runs. A task that is
     * wrapped outside of all scopes runs in none.
     *
     * @param task what to run
     * @return a task for any thread, any number of times
     */
    public static Runnable wrap(Runnable task) {
        return ScopedExecutorService.scoped(task);
    }

    /**
     * As {@link #wrap(Runnable)}. A lambda has to say what it is: {@code wrap((Callable<T>) () -> …)}.
     *
     * @param <T> what the task returns
     * @param task what to call
     * @return a task for any thread, any number of times
     */
    public static <T extends @Nullable Object> Callable<T> wrap(Callable<T> task) {
        return ScopedExecutorService.scoped(task);
    }

    /**
     * As {@link #wrap(Runnable)}. A lambda has to say what it is: {@code wrap((Supplier<T>) () -> …)}.
     *
     * @param <T> what the task returns
     * @param task what to call
     * @return a task for any thread, any number of times
     */
    public static <T extends @Nullable Object> Supplier<T> wrap(Supplier<T> task) {
        Objects.requireNonNull(task, "task");
        if (!Link.present()) {
            return task;
        }
        Object scope = Link.capture();
        return () -> {
            long token = Link.resume(scope);
            try {
                return task.get();
            } finally {
                Link.close(token);
            }
        };
    }

    /**
     * An executor whose tasks run in the scope in which they were submitted; those submitted outside
     * of all scopes run in none.
     *
     * <p>The stages of a {@code CompletableFuture} that are given such an executor follow the chain: a
     * stage is submitted by the thread that completes the one before it, in the scope of that one,
     * or, if that is complete, by the thread that adds it. To choose the scope where a stage is added,
     * use {@link #pin(Executor)}.
     *
     * @param executor runs the tasks
     * @return the executor to submit to
     */
    public static Executor wrap(Executor executor) {
        Objects.requireNonNull(executor, "executor");
        return task -> executor.execute(ScopedExecutorService.scoped(task));
    }

    /**
     * As {@link #wrap(Executor)}. Shutting one down shuts down the other; the tasks that {@code
     * shutdownNow} returns keep their scopes.
     *
     * @param executor runs the tasks
     * @return the executor to submit to
     */
    public static ExecutorService wrap(ExecutorService executor) {
        return new ScopedExecutorService(Objects.requireNonNull(executor, "executor"));
    }

    /**
     * As {@link #wrap(ExecutorService)}; a periodic task runs, each time, in the scope in which it was
     * scheduled.
     *
     * @param executor runs the tasks
     * @return the executor to submit to
     */
    public static ScheduledExecutorService wrap(ScheduledExecutorService executor) {
        return new ScopedScheduledExecutorService(Objects.requireNonNull(executor, "executor"));
    }

    /**
     * An executor whose tasks all run in the scope that the calling thread is in now, whoever submits
     * them: {@code future.thenApplyAsync(function, Heapwarden.pin(pool))}.
     *
     * @param executor runs the tasks
     * @return the executor to submit to
     */
    public static Executor pin(Executor executor) {
        Objects.requireNonNull(executor, "executor");
        if (!Link.present()) {
            return executor;
        }
        Object scope = Link.capture();
        return task ->
                executor.execute(new ScopedRunnable(scope, Objects.requireNonNull(task, "task")));
    }

    /**
     * Begins a section in which the calling thread is not refused memory, for work that must not be
     * torn: {@code try (Mask mask = Heapwarden.mask()) { … }}. Sections nest. What is allocated in them
     * is charged all the same, and the policy bounds how much an account that is over its limit may
     * take so ({@code [enforcement] mask}).
     *
     * @return the section, to be closed on this thread
     */
    public static Mask mask() {
        return new Mask(Link.mask());
    }

    /**
     * Whether the agent is there and scopes have effect. Where it was absent it is looked for again,
     * at most once a second.
     *
     * @return false without the agent
     */
    public static boolean isActive() {
        return Link.active();
    }

    /**
     * Whom the calling thread's allocations are charged to, as far as its scope and its context class
     * loader tell; accounts of packages do not count here. In a scope that was entered just now it may
     * wait until the agent has named the scope, up to two seconds.
     *
     * @return the account's published name; {@code _unaccounted} for nobody's, and without the agent
     */
    public static String currentAccount() {
        return Link.current();
    }

    /**
     * Whether the account of the calling thread takes new work: false while it, or the service around its
     * scope, is over its limit and is refused. Ask before work begins, and turn it away (an HTTP {@code
     * 503}, a message left in its queue): then nothing is torn by an error in its middle. Work that
     * frees memory should go on.
     *
     * <p>As for {@link #currentAccount()}, scopes and class loaders tell whose the thread is; accounts of
     * packages do not count. The answer may be some milliseconds old. It takes some tens of nanoseconds and
     * allocates nothing.
     *
     * @return true where nothing is known against it, where the policy only observes, and without the agent
     */
    public static boolean admits() {
        return Link.admits();
    }

    /**
     * Asks whether the account of the calling thread takes on work that is no request. As {@link
     * #admission(String, String)} without method and path.
     *
     * @return the answer, to be closed when the work has ended
     */
    public static Admission admission() {
        return admission("", "");
    }

    /**
     * Asks whether the account of the calling thread takes on a request. It does while {@link #admits()}
     * is true. While the account is over its limit, one request at a time is let in as a probe, so that a
     * service can let memory go; what the policy lists under {@code admit} is always let in; and a {@code
     * DELETE} does not wait for the pause after a probe. What is turned away counts in {@code
     * heapwarden_account_admission_refusals_total}.
     *
     * <pre>{@code
     * try (Admission admission = Heapwarden.admission("POST", "/cart")) {
     *     if (admission.isGranted()) {
     *         serve(request);
     *     } else {
     *         turnAway(request, admission.retryAfterSeconds());
     *     }
     * }
     * }</pre>
     *
     * <p>It never waits. It costs what {@link #admits()} costs, and allocates nothing, while the account is
     * not over its limit.
     *
     * @param method the request's method, such as {@code GET}
     * @param path its path inside the application, such as {@code /cart}
     * @return the answer, to be closed when the request has ended
     */
    public static Admission admission(String method, String path) {
        Objects.requireNonNull(method, "method");
        Objects.requireNonNull(path, "path");
        return Admission.of(Link.admits() ? null : Link.ask(method, path));
    }

    /**
     * Reads an account. The figures are at most a second old; to have them can take as long as the
     * agent takes to read its accounts, at most three seconds. An account that is younger than they
     * are is missing in them.
     *
     * @param name the account's published name, such as {@code shop/tenant-42}
     * @return its figures; empty where there is no such account, and without the agent
     */
    public static Optional<AccountReading> account(String name) {
        Objects.requireNonNull(name, "name");
        long[] figures = Link.read(name);
        return figures == null || figures.length < AccountReading.FIGURES
                ? Optional.empty()
                : Optional.of(new AccountReading(name, figures));
    }

    /**
     * Reads the account that {@link #currentAccount()} names.
     *
     * @return its figures; empty without the agent
     */
    public static Optional<AccountReading> current() {
        return account(currentAccount());
    }

    /**
     * Listens to the account that {@link #currentAccount()} names, and to the accounts beneath it: in a
     * service and outside of its scopes, to the service and all its scopes. A service that the agent
     * has not named yet is listened to once it has.
     *
     * @param listener called on a thread of its own; held for as long as its class is loaded
     * @return ends the registration
     */
    public static Registration listen(PressureListener listener) {
        return register(null, listener);
    }

    /**
     * Listens to an account, and to the accounts beneath it.
     *
     * @param account its published name; there need not be such an account yet
     * @param listener called on a thread of its own; held for as long as its class is loaded
     * @return ends the registration
     */
    public static Registration listen(String account, PressureListener listener) {
        return register(Objects.requireNonNull(account, "account"), listener);
    }

    private static Registration register(@Nullable String account, PressureListener listener) {
        Objects.requireNonNull(listener, "listener");
        Receiver receiver = Receiver.hold(listener);
        Object subscription = Link.listen(account, receiver);
        if (subscription == null) {
            Receiver.release(receiver);
        }
        return new Registration(receiver, subscription);
    }

    /** The token of a scope; 0 where nothing was entered. */
    private static long open(String name, boolean passOn) {
        Objects.requireNonNull(name, "name");
        if (Link.present()) {
            return Link.enter(name, passOn);
        }
        String fault = ScopeName.fault(name);
        if (fault != null) {
            throw new IllegalArgumentException(fault);
        }
        return 0;
    }
}
