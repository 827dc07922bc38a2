package dev.heapwarden;

import dev.heapwarden.internal.Contexts;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * The allocations of the calling thread by calling context, counted to the object by code that the agent inserts into
 * the packages that its policy names ({@code [exact] contexts = ["com.acme.*"]}).
 *
 * <pre>{@code
 * try (Profile profile = Profile.begin()) {
 *     work();
 *     for (Profile.Context context : profile.read()) {
 *         System.out.println(context.path() + " " + context.allocations());
 *     }
 * }
 * }</pre>
 *
 * <p>Counted are {@code new} and the creation of arrays in methods of those packages; neither clones nor what the
 * JDK allocates for its callers. Two runs of a deterministic program give the same counts.
 *
 * <p><b>Threads.</b> A profile belongs to the thread that began it, which may be a virtual one, and counts this
 * thread alone. A thread has one at a time. All methods but {@link #isActive()} throw {@link
 * IllegalStateException} on another thread, and once it is closed.
 *
 * <p><b>Without the agent</b>, where its policy never wanted contexts, and for more than 1,000 virtual threads at
 * once, a profile does nothing: it is not active, reads nothing, and calls nobody.
 *
 * <p><b>Cost.</b> To begin and to read takes some milliseconds. While a callback waits, each allocation of the thread
 * that is counted costs some ten nanoseconds more.
 *
 * @since 0.1
 */
@SuppressWarnings("exports") // The annotations of nullness: who uses this need not have them.
public final class Profile implements AutoCloseable {
    private static final int NONE = -1;

    /** Null for a profile that does nothing. */
    private final @Nullable Object handle;

    private final Thread owner = Thread.currentThread();

    /** Written by its thread alone. */
    private boolean closed;

    private Profile(@Nullable Object handle) {
        this.handle = handle;
    }

    /**
     * Begins a profile of the calling thread.
     *
     * @return the profile, to be closed on this thread
     * @throws IllegalStateException if the thread has one
     */
    public static Profile begin() {
        return new Profile(Contexts.begin());
    }

    /**
     * Whether anything is counted: the agent is there, and contexts are or were wanted by its policy.
     *
     * @return false for a profile that does nothing
     */
    public boolean isActive() {
        return handle != null;
    }

    /**
     * Returns the thread's allocations since the profile began, by calling context.
     *
     * @return an immutable list: each context in which something was allocated, or of which bytecodes were counted,
     *     and those above it; callers before what they call, the root first. Empty if nothing was
     */
    public List<Context> read() {
        Object of = open();
        if (of == null) {
            return Collections.emptyList();
        }
        Object[] tree = Contexts.read(of);
        int[] parents = (int[]) tree[0];
        String[] methods = (String[]) tree[1];
        // An agent of before counts none.
        long[] ran = tree.length > 5 ? (long[]) tree[5] : new long[2 * parents.length];
        List<Context> contexts = new ArrayList<>(parents.length);
        for (int place = 0; place < parents.length; place++) {
            Context parent = parents[place] == NONE ? null : contexts.get(parents[place]);
            contexts.add(new Context(parent, methods[place], ran[2 * place], ran[2 * place + 1]));
        }
        int[] places = (int[]) tree[2];
        String[] types = (String[]) tree[3];
        long[] amounts = (long[]) tree[4];
        for (int at = 0; at < places.length; at++) {
            contexts.get(places[at])
                    .counted
                    .add(new Allocation(types[at], amounts[2 * at], amounts[2 * at + 1]));
        }
        return Collections.unmodifiableList(contexts);
    }

    /**
     * Runs {@code callback} on this thread right after each allocation with which it has made so many more objects
     * that are counted; an instruction that makes several arrays may complete several times as many, and runs it as
     * often. It runs where the program stands, between two of its instructions: it should be short, take no lock
     * that the program may hold, and not wait. What it allocates itself is not counted. What it throws is kept
     * ({@link #failure()}), and it is not run again. A later call replaces it.
     *
     * @param objects after how many objects, arrays included; more than 0
     * @param callback what to run
     * @throws IllegalArgumentException if {@code objects} is not more than 0
     */
    public void every(long objects, Runnable callback) {
        Objects.requireNonNull(callback, "callback");
        if (objects <= 0) {
            throw new IllegalArgumentException("objects must be more than 0");
        }
        Object of = open();
        if (of != null) {
            Contexts.every(of, objects, callback);
        }
    }

    /**
     * Returns the error that the callback has thrown, after which it is not run any more.
     *
     * @return empty if it has thrown nothing
     */
    public Optional<Throwable> failure() {
        Object of = open();
        return of == null ? Optional.empty() : Optional.ofNullable(Contexts.failure(of));
    }

    /** Ends the profile and its callbacks. Closing twice does nothing. */
    @Override
    public void close() {
        if (closed && Thread.currentThread() == owner) {
            return;
        }
        Object of = open();
        closed = true;
        if (of != null) {
            Contexts.end(of);
        }
    }

    private @Nullable Object open() {
        if (Thread.currentThread() != owner || closed) {
            throw new IllegalStateException("the profile is another thread's, or is closed");
        }
        return handle;
    }

    /** A method as it was called from another context. Immutable. */
    public static final class Context {
        private final @Nullable Context parent;
        private final String method;
        private final long calls;
        private final long bytecodes;
        private final List<Allocation> counted = new ArrayList<>();

        Context(@Nullable Context parent, String method, long calls, long bytecodes) {
            this.parent = parent;
            this.method = method;
            this.calls = calls;
            this.bytecodes = bytecodes;
        }

        /**
         * The context that called the method.
         *
         * @return empty for the root, which is outside of all methods that are counted
         */
        public Optional<Context> parent() {
            return Optional.ofNullable(parent);
        }

        /**
         * The method.
         *
         * @return its name, as {@code com.acme.Cart.add(int, java.lang.String)}; empty for the root
         */
        public String method() {
            return method;
        }

        /**
         * All methods from the first that is counted to this one.
         *
         * @return their names; empty for the root
         */
        public List<String> path() {
            List<String> path = new ArrayList<>();
            Context above = parent;
            for (Context at = this; above != null; at = above, above = at.parent) {
                path.add(at.method);
            }
            Collections.reverse(path);
            return Collections.unmodifiableList(path);
        }

        /**
         * How many calls of the method have ended here, with an exception or without.
         *
         * @return 0 also where the policy does not want executed bytecodes ({@code [exact] bytecodes = true})
         */
        public long calls() {
            return calls;
        }

        /**
         * How many instructions of the method itself these calls have run.
         *
         * @return 0 also where the policy does not want executed bytecodes
         */
        public long bytecodes() {
            return bytecodes;
        }

        /**
         * Returns the allocations of the method itself in this context.
         *
         * @return an immutable list with each type once
         */
        public List<Allocation> allocations() {
            return Collections.unmodifiableList(counted);
        }

        @Override
        public String toString() {
            return method + " " + counted;
        }
    }

    /** Objects of one type that were allocated in one context. Immutable. */
    public static final class Allocation {
        private final String type;
        private final long objects;
        private final long elements;

        Allocation(String type, long objects, long elements) {
            this.type = type;
            this.objects = objects;
            this.elements = elements;
        }

        /**
         * The class of objects, or the type of the elements of arrays.
         *
         * @return for objects the name of their class, as {@code com.acme.Cart$Item}; for arrays one of the types of
         *     numbers, as {@code int}, or {@code reference}
         */
        public String type() {
            return type;
        }

        /**
         * Whether these are arrays.
         *
         * @return false for other objects
         */
        public boolean isArray() {
            return elements >= 0;
        }

        /**
         * How many objects, or arrays.
         *
         * @return a number above 0
         */
        public long objects() {
            return objects;
        }

        /**
         * How many elements the arrays have together.
         *
         * @return empty for objects that are no arrays
         */
        public OptionalLong elements() {
            return isArray() ? OptionalLong.of(elements) : OptionalLong.empty();
        }

        @Override
        public String toString() {
            return isArray() ? type + "[]: " + objects + " of " + elements : type + ": " + objects;
        }
    }
}
