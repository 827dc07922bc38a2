package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Counts allocations by calling context: the code that the agent inserts into methods of the packages that the
 * policy names calls this class.
 *
 * <p>A <em>node</em> is a method called from a node; node 0 is the root. A <em>cell</em> is what is counted for a
 * node and a type: objects, and elements of arrays. Nodes and cells are numbered once for the whole JVM, in tables that only
 * grow. An entry of a table is one {@code long}, which holds the key and the number: it is there or it is not, so
 * readers need no lock, and writers one compare-and-set. What finds no room counts for the node above and as
 * overflow; calls beneath it change nothing, because a program that has filled the tree makes them most of the time.
 *
 * <p>Each platform thread counts in pages of its own, so counting needs no atomics either. A virtual thread
 * counts in those of its carrier, which cannot change between two instructions of this class, unless it has a
 * profile. Its place in the tree is its own. Behind the pages of cells are those of nodes: calls that have ended, and
 * the bytecodes that they have run.
 *
 * <p>The public methods can be called by anybody: see {@link HeapwardenCounter}. Nothing here throws at an
 * allocation; what cannot be counted because the heap is full is lost, and counted as such.
 */
public final class HeapwardenContexts {
    private static final Unsafe UNSAFE = Unsafe.getUnsafe();

    /** Most nodes and cells, and twice as many places in their tables: half of each stays empty. */
    static final int NODE_BITS = 16;

    static final int CELL_BITS = 17;
    static final int MAX_NODES = 1 << NODE_BITS;
    private static final int MAX_CELLS = 1 << CELL_BITS;

    /** Longest path in the tree. */
    private static final int MAX_DEPTH = 1_000;

    /** Of a place in the tree: calls were left out, and it is the node that stands for them. */
    private static final int OVERFLOWED = 1 << NODE_BITS;

    /** Of a place in the tree: nothing is counted, because a callback runs. */
    static final int SILENT = 2 << NODE_BITS;

    static final int NODE_MASK = MAX_NODES - 1;
    static final int CELL_MASK = MAX_CELLS - 1;

    /** A key is a place in the tree and a number of 16 bits: of a method or a type, none of which is 0. */
    static final int NUMBER_BITS = 16;

    static final int NUMBER_MASK = (1 << NUMBER_BITS) - 1;
    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    /** Cells of a page; each has two numbers. */
    static final int PAGE_BITS = 8;

    static final int PAGE = 1 << PAGE_BITS;
    static final int PAGES = (MAX_CELLS + MAX_NODES) / PAGE;

    /** The first page of nodes. */
    static final int NODE_PAGES = MAX_CELLS / PAGE;

    /** The first cells, which are of no node: calls and objects that found no room, by reason. */
    private static final int TOO_DEEP = 0;

    private static final int NO_NODE = 1;
    private static final int NO_CELL = 2;
    private static final int FIRST_CELL = 3;

    /** The places of two more figures of {@link #overflow}: objects that were lost, and the bytes of all this. */
    private static final int LOST = 3;

    private static final int MEMORY = 4;

    /** Types of arrays by their elements; those of instances come behind them, as the agent numbers them. */
    private static final int BOOLEANS = 1;

    private static final int CHARS = 2;
    private static final int FLOATS = 3;
    private static final int DOUBLES = 4;
    private static final int BYTES = 5;
    private static final int SHORTS = 6;
    private static final int INTS = 7;
    private static final int LONGS = 8;
    static final int REFERENCES = 9;

    /** The number that the agent is told in the place of a type: calls that have ended, and the bytecodes that they have run. */
    private static final int CALLS = 10;

    /** Virtual threads that may have pages of their own at a time. */
    private static final int MAX_VIRTUAL = 1_000;

    /** Key and number of each node and of each cell; 0 where there is none. */
    static final long[] NODES = new long[2 * MAX_NODES];

    static final long[] CELLS = new long[2 * MAX_CELLS];

    /** By node. */
    private static final short[] DEPTHS = new short[MAX_NODES];

    /** Where the elements of a long[] begin. */
    private static final long LONGS_BEGIN = longsBegin();

    private static final Class<?> SELF = HeapwardenContexts.class;
    private static final long NODES_END = offset("nodesEnd");
    private static final long CELLS_END = offset("cellsEnd");
    private static final long COUNTS = offset("counts");
    private static final long VIRTUALS = offset("virtuals");
    private static final Object BASE = base();

    /** The next node and cell. */
    private static volatile int nodesEnd = 1;

    private static volatile int cellsEnd = FIRST_CELL;

    /** Pages of all living threads, and of dead ones until the next {@link #sum}. */
    private static volatile HeapwardenContextCounts counts;

    /** How many virtual threads have pages of their own, and one more. */
    private static volatile int virtuals = 1;

    /** Whether calls were ever counted. */
    private static volatile boolean hasCalls;

    /** Objects that could not be counted: several threads write it, so it is no exact number. */
    private static long lost;

    /** Counts of dead threads, all sums, and what was told of them, by cell. The agent's thread alone. */
    private static long[] retired = new long[2 * PAGE];

    private static long[] sums = new long[2 * PAGE];
    private static long[] told = new long[2 * PAGE];
    private static boolean[] toldNodes = new boolean[MAX_NODES];

    private HeapwardenContexts() {}

    /** Found by trial, because the JDK's own constant has changed its type. */
    private static long longsBegin() {
        long[] probe = {SPREAD, SPREAD, SPREAD, SPREAD};
        long at = 8;
        while (UNSAFE.getLong(probe, at) != SPREAD) {
            at += 8;
        }
        return at;
    }

    private static java.lang.reflect.Field field(String name) {
        try {
            return SELF.getDeclaredField(name);
        } catch (NoSuchFieldException impossible) {
            throw new NoSuchFieldError(name);
        }
    }

    private static long offset(String name) {
        return UNSAFE.staticFieldOffset(field(name));
    }

    private static Object base() {
        return UNSAFE.staticFieldBase(field("nodesEnd"));
    }

    // ---- what inserted code calls --------------------------------------------------------

    /**
     * A method begins.
     *
     * @param method its number
     * @return what {@link #leave} and {@link #again} want
     */
    @ForceInline
    public static int enter(int method) {
        Object found = UNSAFE.getReference(Thread.currentThread(), HeapwardenCounter.PLACE);
        if (!(found instanceof HeapwardenThread)) {
            return enterFirst(method);
        }
        HeapwardenThread state = (HeapwardenThread) found;
        int before = state.context;
        if (before >= OVERFLOWED) {
            return before;
        }
        long key = (long) before << NUMBER_BITS | method;
        long entry = NODES[nodeSlot(key)];
        state.context =
                entry >>> NODE_BITS == key
                        ? (int) entry & NODE_MASK
                        : child(state, before, method, true);
        return before;
    }

    /** A method ends, with an exception or without. */
    @ForceInline
    public static void leave(int before) {
        Object found = UNSAFE.getReference(Thread.currentThread(), HeapwardenCounter.PLACE);
        if (found instanceof HeapwardenThread) {
            ((HeapwardenThread) found).context = before;
        }
    }

    /** A method ends that has run so many instructions of its own, without a loop. */
    @ForceInline
    public static void leave(int before, int bytecodes) {
        leave(before, (long) bytecodes);
    }

    /** A method ends that has run so many instructions of its own. */
    @ForceInline
    public static void leave(int before, long bytecodes) {
        Object found = UNSAFE.getReference(Thread.currentThread(), HeapwardenCounter.PLACE);
        if (!(found instanceof HeapwardenThread)) {
            return;
        }
        HeapwardenThread state = (HeapwardenThread) found;
        int place = state.context;
        state.context = before;
        long[][] pages = state.contexts;
        if (place < SILENT && pages != null) {
            long[] page = pages[NODE_PAGES + ((place & NODE_MASK) >>> PAGE_BITS)];
            if (page != null) {
                int at = 2 * (place & PAGE - 1);
                // A call that found no room is none of this node.
                page[at] += 1 - (place >>> NODE_BITS);
                page[at + 1] += bytecodes;
                return;
            }
        }
        ended(state, place, bytecodes);
    }

    /** A method goes on after it has caught something. */
    public static void again(int before, int method) {
        Object found = UNSAFE.getReference(Thread.currentThread(), HeapwardenCounter.PLACE);
        if (found instanceof HeapwardenThread) {
            HeapwardenThread state = (HeapwardenThread) found;
            state.context = child(state, before, method, false);
        }
    }

    /** An instance of the class with this number was made. */
    @ForceInline
    public static void made(int type) {
        add(type, 0);
    }

    /** An array was made. */
    @ForceInline
    public static void made(boolean[] made) {
        add(BOOLEANS, made.length);
    }

    /** An array was made. */
    @ForceInline
    public static void made(char[] made) {
        add(CHARS, made.length);
    }

    /** An array was made. */
    @ForceInline
    public static void made(float[] made) {
        add(FLOATS, made.length);
    }

    /** An array was made. */
    @ForceInline
    public static void made(double[] made) {
        add(DOUBLES, made.length);
    }

    /** An array was made. */
    @ForceInline
    public static void made(byte[] made) {
        add(BYTES, made.length);
    }

    /** An array was made. */
    @ForceInline
    public static void made(short[] made) {
        add(SHORTS, made.length);
    }

    /** An array was made. */
    @ForceInline
    public static void made(int[] made) {
        add(INTS, made.length);
    }

    /** An array was made. */
    @ForceInline
    public static void made(long[] made) {
        add(LONGS, made.length);
    }

    /** An array was made. */
    @ForceInline
    public static void made(Object[] made) {
        add(REFERENCES, made.length);
    }

    /**
     * Arrays in arrays were made by one instruction.
     *
     * @param dimensions how many of its dimensions were made: more than one
     * @param last the type of the arrays of the last of them
     */
    public static void made(Object[] made, int dimensions, int last) {
        long arrays = 0;
        long elements = 0;
        long above = 1;
        Object level = made;
        for (int left = dimensions; left > 0 && above > 0; left--) {
            if (left == 1 && last != REFERENCES) {
                break;
            }
            Object[] references = (Object[]) level;
            arrays += above;
            above *= references.length;
            elements += above;
            level = above > 0 ? references[0] : null;
        }
        HeapwardenThread state = counting();
        if (state == null) {
            return;
        }
        add(state, REFERENCES, arrays, elements);
        long all = arrays;
        if (last != REFERENCES && above > 0) {
            add(state, last, above, above * length(level));
            all += above;
        }
        HeapwardenProfile.made(state, all);
    }

    // ---- the tree ------------------------------------------------------------------------

    @ForceInline
    private static int nodeSlot(long key) {
        return (int) (key * SPREAD >>> 64 - NODE_BITS - 1);
    }

    @ForceInline
    private static int cellSlot(long key) {
        return (int) (key * SPREAD >>> 64 - CELL_BITS - 1);
    }

    /** A thread that was there before anybody counted. */
    @DontInline
    private static int enterFirst(int method) {
        HeapwardenThread state = HeapwardenCounter.of(Thread.currentThread());
        if (state == null) {
            return 0;
        }
        int before = state.context;
        state.context = child(state, before, method, true);
        return before;
    }

    /** The place of a method that is called from the place {@code before}. */
    @DontInline
    private static int child(HeapwardenThread state, int before, int method, boolean isCall) {
        if (before >= OVERFLOWED) {
            return before;
        }
        long key = (long) before << NUMBER_BITS | method;
        for (int slot = nodeSlot(key); ; ) {
            long at = longAt(slot);
            long entry = UNSAFE.getLongVolatile(NODES, at);
            if (entry >>> NODE_BITS == key) {
                return (int) entry & NODE_MASK;
            }
            if (entry != 0) {
                slot = slot + 1 & NODES.length - 1;
                continue;
            }
            int depth = DEPTHS[before] + 1;
            int node = depth > MAX_DEPTH ? 0 : next(NODES_END, MAX_NODES);
            if (node == 0) {
                return isCall ? overflowed(state, before) : before | OVERFLOWED;
            }
            DEPTHS[node] = (short) depth;
            if (UNSAFE.compareAndSetLong(NODES, at, 0, key << NODE_BITS | node)) {
                return node;
            }
            // Another thread was first, with this key or another.
            giveBack(NODES_END, node);
        }
    }

    /** A call finds no room: those beneath it have the same place and are not counted. */
    private static int overflowed(HeapwardenThread state, int before) {
        count(state, reason(before), 1, 0);
        return before | OVERFLOWED;
    }

    private static int reason(int place) {
        return DEPTHS[place & NODE_MASK] >= MAX_DEPTH ? TOO_DEEP : NO_NODE;
    }

    /** The cell of a type at a node; 0 if there is no room. */
    private static int cell(int node, int type) {
        long key = (long) node << NUMBER_BITS | type;
        for (int slot = cellSlot(key); ; ) {
            long at = longAt(slot);
            long entry = UNSAFE.getLongVolatile(CELLS, at);
            if (entry >>> CELL_BITS == key) {
                return (int) entry & CELL_MASK;
            }
            if (entry != 0) {
                slot = slot + 1 & CELLS.length - 1;
                continue;
            }
            int cell = next(CELLS_END, MAX_CELLS);
            if (cell == 0 || UNSAFE.compareAndSetLong(CELLS, at, 0, key << CELL_BITS | cell)) {
                return cell;
            }
            giveBack(CELLS_END, cell);
        }
    }

    private static long longAt(int index) {
        return LONGS_BEGIN + 8L * index;
    }

    /** Takes the next number; 0 if there is none. */
    private static int next(long field, int most) {
        int next;
        do {
            next = UNSAFE.getIntVolatile(BASE, field);
            if (next == most) {
                return 0;
            }
        } while (!UNSAFE.compareAndSetInt(BASE, field, next, next + 1));
        return next;
    }

    /** Gives a number back, unless a later one is taken: then nobody gets it. */
    private static void giveBack(long field, int number) {
        UNSAFE.compareAndSetInt(BASE, field, number + 1, number);
    }

    // ---- counting ------------------------------------------------------------------------

    /** Not inlined: see {@link HeapwardenCounter}. */
    @DontInline
    private static void add(int type, long elements) {
        Object found = UNSAFE.getReference(Thread.currentThread(), HeapwardenCounter.PLACE);
        if (found instanceof HeapwardenThread) {
            HeapwardenThread state = (HeapwardenThread) found;
            long key = (long) state.context << NUMBER_BITS | type;
            long entry = CELLS[cellSlot(key)];
            long[][] pages = state.contexts;
            if (entry >>> CELL_BITS == key && pages != null) {
                int cell = (int) entry & CELL_MASK;
                long[] page = pages[cell >>> PAGE_BITS];
                if (page != null) {
                    int at = 2 * (cell & PAGE - 1);
                    page[at]++;
                    page[at + 1] += elements;
                    return;
                }
            }
        }
        slow(type, elements);
    }

    @DontInline
    private static void slow(int type, long elements) {
        HeapwardenThread state = counting();
        if (state != null) {
            add(state, type, 1, elements);
            HeapwardenProfile.made(state, 1);
        }
    }

    /** Counts a call that has ended for {@link #leave}, where the page is not at hand. */
    @DontInline
    private static void ended(HeapwardenThread state, int place, long bytecodes) {
        if (place < SILENT) {
            hasCalls = true;
            count(state, MAX_CELLS + (place & NODE_MASK), 1 - (place >>> NODE_BITS), bytecodes);
        }
    }

    /** The state of the calling thread; null if it counts nothing now. */
    private static HeapwardenThread counting() {
        HeapwardenThread state = HeapwardenCounter.of(Thread.currentThread());
        if (state == null) {
            lost++;
            return null;
        }
        return (state.context & SILENT) == 0 ? state : null;
    }

    private static void add(HeapwardenThread state, int type, long objects, long elements) {
        int place = state.context;
        if (place >= OVERFLOWED) {
            count(state, reason(place), 0, objects);
        }
        int cell = cell(place & NODE_MASK, type);
        if (cell == 0) {
            count(state, NO_CELL, 0, objects);
        } else {
            count(state, cell, objects, elements);
        }
    }

    private static void count(HeapwardenThread state, int cell, long first, long second) {
        long[] page = null;
        try {
            page = page(state, cell >>> PAGE_BITS);
        } catch (OutOfMemoryError full) {
            // The program is to see that at its own allocations.
        }
        if (page == null) {
            lost++;
            return;
        }
        int at = 2 * (cell & PAGE - 1);
        page[at] += first;
        page[at + 1] += second;
    }

    /** A page that the calling thread counts in; null if it is a virtual one without a carrier. */
    private static long[] page(HeapwardenThread state, int number) {
        long[][] pages = state.contexts;
        if (pages == null) {
            pages = state.ownContexts;
            if (pages == null) {
                pages = first(state);
                state.contexts = pages;
            } else if (state.profile == null || state.profile.every == 0) {
                state.contexts = pages;
            }
        }
        if (pages == null) {
            return null;
        }
        long[] page = pages[number];
        if (page == null) {
            page = new long[2 * PAGE];
            // Who sees it is to see zeros.
            UNSAFE.storeFence();
            pages[number] = page;
        }
        return page;
    }

    /** The pages of a thread that has none of its own. */
    private static long[][] first(HeapwardenThread state) {
        Thread thread = Thread.currentThread();
        if (thread.getClass() != HeapwardenCounter.VIRTUAL) {
            return own(state, thread);
        }
        Object carrier = UNSAFE.getReference(thread, HeapwardenCounter.CARRIER);
        HeapwardenThread under = carrier == null ? null : HeapwardenCounter.of((Thread) carrier);
        if (under == null) {
            return null;
        }
        return under.ownContexts != null ? under.ownContexts : own(under, (Thread) carrier);
    }

    static long[][] own(HeapwardenThread state, Thread owner) {
        HeapwardenContextCounts mine = new HeapwardenContextCounts(new long[PAGES][], owner);
        HeapwardenContextCounts head;
        do {
            head = counts;
            mine.next = head;
        } while (!UNSAFE.compareAndSetReference(BASE, COUNTS, head, mine));
        state.ownContexts = mine.pages;
        return mine.pages;
    }

    /** Whether there may be pages of one more virtual thread. */
    static boolean admitsVirtual() {
        return next(VIRTUALS, MAX_VIRTUAL + 1) != 0;
    }

    private static int length(Object array) {
        return array instanceof int[]
                ? ((int[]) array).length
                : java.lang.reflect.Array.getLength(array);
    }

    // ---- what the agent calls ------------------------------------------------------------

    /** Tells the agent what is new since the last time. On one thread at a time. */
    static void sum() {
        HeapwardenContextCounts head = counts;
        // The head stays, because threads put theirs before it.
        HeapwardenContextCounts before = head;
        while (before != null && before.next != null) {
            HeapwardenContextCounts each = before.next;
            if (each.owner.isAlive()) {
                before = each;
            } else {
                grow();
                sum(each.pages, retired);
                before.next = each.next;
                if (each.owner.getClass() == HeapwardenCounter.VIRTUAL) {
                    UNSAFE.getAndAddInt(BASE, VIRTUALS, -1);
                }
            }
        }
        grow();
        System.arraycopy(retired, 0, sums, 0, retired.length);
        long bytes = 8L * (NODES.length + CELLS.length + 3L * retired.length) + 3L * MAX_NODES;
        for (HeapwardenContextCounts each = head; each != null; each = each.next) {
            bytes += sum(each.pages, sums);
        }
        tellNodes();
        for (long entry : CELLS) {
            int at = 2 * ((int) entry & CELL_MASK);
            if (entry != 0 && at < sums.length && (sums[at] != told[at] || sums[at + 1] != told[at + 1])) {
                told[at] = sums[at];
                told[at + 1] = sums[at + 1];
                cell((int) (entry >>> CELL_BITS), sums[at], sums[at + 1]);
            }
        }
        for (int node = 0; hasCalls && node < MAX_NODES; node++) {
            int at = 2 * (MAX_CELLS + node);
            if (at < sums.length && (sums[at] != told[at] || sums[at + 1] != told[at + 1])) {
                told[at] = sums[at];
                told[at + 1] = sums[at + 1];
                cell(node << NUMBER_BITS | CALLS, sums[at], sums[at + 1]);
            }
        }
        for (int reason = 0; reason < FIRST_CELL; reason++) {
            overflow(reason, sums[2 * reason], sums[2 * reason + 1]);
        }
        overflow(LOST, 0, lost);
        overflow(MEMORY, 0, bytes);
    }

    /** Makes room for all cells that there are, and for all nodes once their calls are counted. */
    private static void grow() {
        int most = 2 * (MAX_CELLS + MAX_NODES);
        int length = hasCalls ? most : 2 * cellsEnd;
        if (length > retired.length) {
            int longer = Math.min(Math.max(length, 2 * retired.length), most);
            retired = resized(retired, longer);
            told = resized(told, longer);
            sums = new long[longer];
        }
    }

    /** The counters take back what the JDK's method for this allocates, which nobody counts here. */
    static long[] resized(long[] array, int length) {
        long[] resized = new long[length];
        System.arraycopy(array, 0, resized, 0, Math.min(length, array.length));
        return resized;
    }

    /** Nodes first: nobody is to hear of a cell of a node that he does not know. */
    private static void tellNodes() {
        for (long entry : NODES) {
            int node = (int) entry & NODE_MASK;
            if (entry != 0 && !toldNodes[node]) {
                toldNodes[node] = true;
                node(node, (int) (entry >>> NODE_BITS));
            }
        }
    }

    /** Returns the bytes of the pages. */
    private static long sum(long[][] pages, long[] into) {
        long bytes = 8L * PAGES;
        for (int number = 0; number < PAGES; number++) {
            long[] page = pages[number];
            if (page == null) {
                continue;
            }
            bytes += 16L * PAGE;
            int first = 2 * PAGE * number;
            for (int at = 0; at < page.length && first + at < into.length; at++) {
                into[first + at] += page[at];
            }
        }
        return bytes;
    }

    /** Tells a node: 16 bits that of its caller, 16 bits its method. */
    private static native void node(int node, int callerAndMethod);

    /** Tells the sums of a cell: 16 bits its node, 16 bits its type. */
    private static native void cell(int nodeAndType, long objects, long elements);

    /** Tells calls and objects that found no room; and other figures, by number. */
    private static native void overflow(int reason, long calls, long objects);

    /** The name of a method, or of a type. */
    static native String name(int number, boolean isMethod);
}
