package java.lang;

import static java.lang.HeapwardenContexts.*;

/**
 * A program's reading of the contexts of one of its threads, by {@code dev.heapwarden.Profile}. Used by that thread
 * alone; the public methods can be called by anybody.
 */
public final class HeapwardenProfile {
    final Thread owner;

    /** The thread's pages as they were when the profile began. */
    final long[][] before;

    /** After how many objects {@link #callback} is called again; 0: never. */
    long every;

    /** How many of them are left. */
    long left;

    Runnable callback;

    /** The error that the callback threw: it is not called any more. */
    Throwable failure;

    private HeapwardenProfile(Thread owner, long[][] before) {
        this.owner = owner;
        this.before = before;
    }

    /**
     * Begins a profile of the calling thread.
     *
     * @return what the other methods want; null if there are too many, or no room
     * @throws IllegalStateException if the thread has one
     */
    public static Object begin() {
        Thread thread = Thread.currentThread();
        HeapwardenThread state = HeapwardenCounter.of(thread);
        if (state == null) {
            return null;
        }
        if (state.profile != null) {
            throw new IllegalStateException("the thread has a profile already");
        }
        if (state.ownContexts == null) {
            if (thread.getClass() == HeapwardenCounter.VIRTUAL
                    && !admitsVirtual()) {
                return null;
            }
            state.contexts = own(state, thread);
        }
        long[][] now = state.ownContexts;
        long[][] before = new long[PAGES][];
        for (int page = 0; page < PAGES; page++) {
            before[page] = now[page] == null ? null : now[page].clone();
        }
        state.profile = new HeapwardenProfile(thread, before);
        return state.profile;
    }

    /**
     * Calls {@code callback} on the calling thread whenever it has made so many more objects that contexts count;
     * what it throws ends that. Nothing is counted meanwhile.
     *
     * @param profile from {@link #begin}, of the calling thread
     * @param objects 0: never again
     */
    public static void every(Object profile, long objects, Runnable callback) {
        HeapwardenProfile mine = mine(profile);
        HeapwardenThread state = HeapwardenCounter.of(mine.owner);
        mine.callback = callback;
        mine.every = objects;
        mine.left = objects;
        // Then no allocation takes the short way.
        state.contexts = objects == 0 ? state.ownContexts : null;
    }

    /** Returns the error that ended the callbacks; null if there was none. */
    public static Throwable failure(Object profile) {
        return mine(profile).failure;
    }

    /** Ends a profile. */
    public static void end(Object profile) {
        HeapwardenProfile mine = mine(profile);
        HeapwardenThread state = HeapwardenCounter.of(mine.owner);
        state.contexts = state.ownContexts;
        state.profile = null;
    }

    private static HeapwardenProfile mine(Object profile) {
        HeapwardenProfile mine = (HeapwardenProfile) profile;
        Thread thread = Thread.currentThread();
        if (mine.owner != thread || HeapwardenCounter.of(thread).profile != mine) {
            throw new IllegalStateException("the profile is another thread's, or has ended");
        }
        return mine;
    }

    /**
     * The tree of the calling thread since {@link #begin}: nodes that allocated, and those above them.
     *
     * @return for each node that of its caller (int[], -1 for the root) and its method (String[]); for each count
     *     its node (int[]), its type (String[]), and its objects and elements (long[], two each; the elements are -1
     *     for instances); for each node its calls that have ended, and the bytecodes that they have run (long[], two
     *     each)
     */
    public static Object[] read(Object profile) {
        HeapwardenProfile mine = mine(profile);
        long[][] now = HeapwardenCounter.of(mine.owner).ownContexts;
        int[] keys = new int[MAX_NODES];
        int[] places = new int[MAX_NODES];
        for (long entry : NODES) {
            keys[(int) entry & NODE_MASK] = (int) (entry >>> NODE_BITS);
        }
        int most = 0;
        for (int page = 0; page < PAGES; page++) {
            most += now[page] == null ? 0 : PAGE;
        }
        int[] nodes = new int[most];
        String[] types = new String[most];
        long[] amounts = new long[2 * most];
        int found = 0;
        for (long entry : CELLS) {
            int cell = (int) entry & CELL_MASK;
            long[] page = now[cell >>> PAGE_BITS];
            if (entry == 0 || page == null) {
                continue;
            }
            long[] before = mine.before[cell >>> PAGE_BITS];
            int at = 2 * (cell & PAGE - 1);
            long objects = page[at] - (before == null ? 0 : before[at]);
            long elements = page[at + 1] - (before == null ? 0 : before[at + 1]);
            if (objects == 0) {
                continue;
            }
            int node = (int) (entry >>> CELL_BITS + NUMBER_BITS);
            int type = (int) (entry >>> CELL_BITS) & NUMBER_MASK;
            nodes[found] = node;
            types[found] = name(type, false);
            amounts[2 * found] = objects;
            amounts[2 * found + 1] = type > REFERENCES ? -1 : elements;
            found++;
            mark(places, keys, node);
        }
        long[] ran = new long[2 * MAX_NODES];
        for (int node = 0; node < MAX_NODES; node++) {
            int number = NODE_PAGES + (node >>> PAGE_BITS);
            if (now[number] == null) {
                // To the last of the page.
                node |= PAGE - 1;
                continue;
            }
            long[] before = mine.before[number];
            int at = 2 * (node & PAGE - 1);
            for (int half = 0; half < 2; half++) {
                ran[2 * node + half] = now[number][at + half] - (before == null ? 0 : before[at + half]);
            }
            if (ran[2 * node + 1] != 0) {
                mark(places, keys, node);
            }
        }
        int count = 0;
        for (int node = 0; node < MAX_NODES; node++) {
            if (places[node] != 0) {
                places[node] = count++;
            }
        }
        int[] parents = new int[count];
        String[] methods = new String[count];
        long[] calls = new long[2 * count];
        for (int node = 0, place = 0; place < count; node++) {
            if (node == 0 || places[node] != 0) {
                parents[place] = node == 0 ? -1 : places[keys[node] >>> NUMBER_BITS];
                methods[place] = node == 0 ? "" : name(keys[node] & NUMBER_MASK, true);
                calls[2 * place] = ran[2 * node];
                calls[2 * place + 1] = ran[2 * node + 1];
                place++;
            }
        }
        int[] placed = new int[found];
        for (int at = 0; at < found; at++) {
            placed[at] = places[nodes[at]];
        }
        String[] named = new String[found];
        System.arraycopy(types, 0, named, 0, found);
        return new Object[] {parents, methods, placed, named, resized(amounts, 2 * found), calls};
    }

    /** Marks a node and those above it. */
    private static void mark(int[] places, int[] keys, int node) {
        for (int at = node; places[at] == 0; at = keys[at] >>> NUMBER_BITS) {
            places[at] = 1;
            if (at == 0) {
                return;
            }
        }
    }

    /** Calls the program if so many more objects are what it waits for. */
    static void made(HeapwardenThread state, long objects) {
        HeapwardenProfile profile = state.profile;
        if (profile == null || profile.every == 0) {
            return;
        }
        profile.left -= objects;
        while (profile.every != 0 && profile.left <= 0) {
            profile.left += profile.every;
            int place = state.context;
            state.context = place | SILENT;
            try {
                profile.callback.run();
            } catch (Throwable thrown) {
                profile.failure = thrown;
                profile.every = 0;
            } finally {
                state.context = place;
            }
        }
    }
}
