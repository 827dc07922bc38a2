package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Stable;

/**
 * Counts allocations exactly: the code that the agent inserts behind each allocation calls this class.
 *
 * <p>Each thread counts by account and class in a table of its own ({@link HeapwardenTable}): what it makes most
 * stands at the place where it is looked for first. The code for that is called and not inlined: methods with many
 * allocations grew so large by it that the compiler no longer inlined what it had inlined before, which cost more than
 * the calls do.
 *
 * <p>It is in {@code java.lang} because code of every class loader and module must find it, and because
 * it reads a private field of {@link Thread}. It is not rewritten itself, and what it calls allocates
 * nothing that would be counted. Nothing here takes a lock, and only {@link #prepare}, {@link
 * #room}, {@link #learn} and {@link #adopt} allocate.
 *
 * <p>Anybody in the JVM can call the public methods, as anybody can allocate: they falsify counts, and
 * nothing depends on counts.
 */
public final class HeapwardenCounter {
    private static final Unsafe UNSAFE = Unsafe.getUnsafe();

    /** Sizes of instances, by the number of the class; 0 is not known, or an array's. */
    static final int CLASSES = 1 << 16;

    /** The classes that are not told apart: the numbers of all others come from the agent, and are larger. */
    static final int OTHER = HeapwardenTable.OTHER;

    private static final int BOOLEANS = 2;
    private static final int BYTES = 3;
    private static final int SHORTS = 4;
    private static final int CHARS = 5;
    private static final int INTS = 6;
    private static final int FLOATS = 7;
    private static final int LONGS = 8;
    private static final int DOUBLES = 9;
    private static final int OBJECTS = 10;

    /** Numbers of classes that come as objects, by the hash of the class; more than are in use at a time. */
    private static final HeapwardenClass[] KNOWN = new HeapwardenClass[1 << 12];

    @Stable private static final int[] SIZES = new int[CLASSES];

    /**
     * By number of code that may belong to an account: twice the number of its purse; negative if it has
     * none now, 0 before anybody asked.
     */
    private static final int[] ACCOUNTS = new int[CLASSES];

    /**
     * The number of the moment, above all accounts; {@link HeapwardenThread#account} is mixed with it. An
     * account of an earlier moment is none for {@link #add}, so its thread asks again, whichever thread it
     * is, at the price of one operation. No thread sleeps through all {@link #MOMENTS}.
     */
    private static int moment;

    /** Where the number of the moment begins: accounts are less. */
    private static final int FIRST_MOMENT_BIT = 18;

    /** So many moments are told apart; accounts stay positive. */
    private static final int MOMENTS = 1 << (31 - FIRST_MOMENT_BIT);

    /** Where the field is that holds a {@link HeapwardenThread}. */
    static final long PLACE = place();

    /** The class of virtual threads, and where their carrier is; null where there are none. */
    static final Class<?> VIRTUAL = virtual();

    static final long CARRIER =
            VIRTUAL == null ? 0 : UNSAFE.objectFieldOffset(VIRTUAL, "carrierThread");

    /** Objects are as long as a multiple of this; less one. */
    @Stable private static int alignedMask;

    /** Where the elements of arrays begin: measured, because the JDK's constants changed their type. */
    @Stable private static int bytesBegin;

    @Stable private static int shortsBegin;
    @Stable private static int intsBegin;
    @Stable private static int longsBegin;
    @Stable private static int referencesBegin;
    @Stable private static int reference;

    /** Counts of all living threads, and of dead ones until the next {@link #sum}. */
    private static volatile HeapwardenCounts counts;

    private static final Object COUNTS_BASE;
    private static final long COUNTS;

    /** The counts of dead threads. The agent's thread alone. */
    private static long[] retired = HeapwardenTable.ofSlots(HeapwardenTable.FIRST_SLOTS);

    /** The latest sum of all threads. The agent's thread alone. */
    private static long[] together = HeapwardenTable.ofSlots(HeapwardenTable.FIRST_SLOTS);

    /** Objects that could not be counted: several threads write it, so it is no exact number. */
    private static long lost;

    static {
        try {
            java.lang.reflect.Field field = HeapwardenCounter.class.getDeclaredField("counts");
            COUNTS_BASE = UNSAFE.staticFieldBase(field);
            COUNTS = UNSAFE.staticFieldOffset(field);
        } catch (NoSuchFieldException impossible) {
            throw new NoSuchFieldError("counts");
        }
    }

    private HeapwardenCounter() {}

    private static long place() {
        try {
            return UNSAFE.objectFieldOffset(Thread.class, "interruptLock");
        } catch (InternalError older) {
            return UNSAFE.objectFieldOffset(Thread.class, "blockerLock");
        }
    }

    private static Class<?> virtual() {
        try {
            return Class.forName("java.lang.VirtualThread", false, null);
        } catch (ClassNotFoundException older) {
            return null;
        }
    }

    // ---- what inserted code calls --------------------------------------------------------

    /** An instance of the class was made. */
    @DontInline
    public static void made(Class<?> made, int number) {
        if (!addAtHome(number, 0, 1)) {
            slowInstance(made, number);
        }
    }

    /** An array was made. */
    @ForceInline
    public static void made(byte[] made) {
        add(BYTES, aligned(bytesBegin + (long) made.length), 1);
    }

    /** An array was made. */
    @ForceInline
    public static void made(boolean[] made) {
        add(BOOLEANS, aligned(bytesBegin + (long) made.length), 1);
    }

    /** An array was made. */
    @ForceInline
    public static void made(short[] made) {
        add(SHORTS, aligned(shortsBegin + 2L * made.length), 1);
    }

    /** An array was made. */
    @ForceInline
    public static void made(char[] made) {
        add(CHARS, aligned(shortsBegin + 2L * made.length), 1);
    }

    /** An array was made. */
    @ForceInline
    public static void made(int[] made) {
        add(INTS, aligned(intsBegin + 4L * made.length), 1);
    }

    /** An array was made. */
    @ForceInline
    public static void made(float[] made) {
        add(FLOATS, aligned(intsBegin + 4L * made.length), 1);
    }

    /** An array was made. */
    @ForceInline
    public static void made(long[] made) {
        add(LONGS, aligned(longsBegin + 8L * made.length), 1);
    }

    /** An array was made. */
    @ForceInline
    public static void made(double[] made) {
        add(DOUBLES, aligned(longsBegin + 8L * made.length), 1);
    }

    /**
     * An array was made.
     *
     * @param number of its class
     */
    @ForceInline
    public static void made(Object[] made, int number) {
        add(number, aligned(referencesBegin + (long) reference * made.length), 1);
    }

    /** An array was made with so many of its dimensions. */
    public static void madeNested(Object[] made, int dimensions) {
        Object[] level = made;
        long above = 1;
        for (int left = dimensions; ; left--) {
            long bytes = above * aligned(referencesBegin + (long) reference * level.length);
            add(numberOf(level.getClass()), bytes, above);
            above *= level.length;
            if (left == 1 || above == 0) {
                break;
            }
            if (left == 2 && !(level[0] instanceof Object[])) {
                add(numberOf(level[0].getClass()), above * arrayBytes(level[0]), above);
                break;
            }
            level = (Object[]) level[0];
        }
    }

    /** An object of any class was made, by native code or by the compiler in the place of Java's. */
    public static void madeObject(Object made) {
        if (made == null) {
            return;
        }
        Class<?> itsClass = made.getClass();
        int number = numberOf(itsClass);
        if (itsClass.isArray()) {
            add(number, arrayBytes(made), 1);
        } else if (number == OTHER || itsClass.isHidden()) {
            // A later hidden class may have the name of one that is gone, and so its number, but not its size.
            add(number, sizeOf(made), 1);
        } else {
            made(itsClass, number);
        }
    }

    /** A tree of arrays was made, as by {@code Array.newInstance} with several dimensions. */
    public static void madeMany(Object made, int[] dimensions) {
        if (dimensions.length > 1 && made instanceof Object[]) {
            madeNested((Object[]) made, dimensions.length);
        } else {
            madeObject(made);
        }
    }

    /** Takes back the count of a returned array: counted in the method's body, it will be counted again by its caller. */
    public static void takeBack(Object made) {
        if (made != null) {
            add(numberOf(made.getClass()), -arrayBytes(made), -1);
        }
    }

    /**
     * Code of an account begins: the result is what {@link #leave} wants.
     *
     * @param number finds the account
     */
    @ForceInline
    public static int enter(int number) {
        Object found = UNSAFE.getReference(Thread.currentThread(), PLACE);
        if (!(found instanceof HeapwardenThread)) {
            return HeapwardenThread.UNKNOWN;
        }
        HeapwardenThread state = (HeapwardenThread) found;
        int now = moment;
        if (state.free != now) {
            return enterUnknown(state, number);
        }
        int before = state.account;
        int account = ACCOUNTS[number];
        if (account == 0) {
            account = ask(number);
        }
        if (account > 0) {
            state.account = account ^ now;
        }
        return before;
    }

    /** The thread is not known to be free: it is fixed, or has to ask which it is. */
    @DontInline
    private static int enterUnknown(HeapwardenThread state, int number) {
        if (!isKnown(state.account)) {
            settle(state);
            int account = ACCOUNTS[number];
            if (account == 0) {
                account = ask(number);
            }
            if (account > 0 && state.free == moment) {
                state.account = account ^ moment;
            }
        }
        // Whoever called this code is to ask, if the thread is free when it returns.
        return HeapwardenThread.UNKNOWN;
    }

    @DontInline
    private static int ask(int number) {
        int account = owner(number);
        ACCOUNTS[number] = account;
        return account;
    }

    /** Code of an account returns. */
    @ForceInline
    public static void leave(int before) {
        Object found = UNSAFE.getReference(Thread.currentThread(), PLACE);
        if (found instanceof HeapwardenThread) {
            HeapwardenThread state = (HeapwardenThread) found;
            if (state.free == moment) {
                state.account = before;
            }
        }
    }

    /** Code of an account goes on after it has caught something. */
    @ForceInline
    public static void again(int number) {
        enter(number);
    }

    /** The constructor of a thread has just made its lock. */
    public static void adopt(Thread thread) {
        UNSAFE.putReference(thread, PLACE, new HeapwardenThread());
    }

    /** A virtual thread was mounted: it counts where its carrier counts. */
    public static void mounted(Thread thread) {
        Object carrier = UNSAFE.getReference(thread, CARRIER);
        Object found = UNSAFE.getReference(thread, PLACE);
        if (carrier == null || !(found instanceof HeapwardenThread)) {
            return;
        }
        HeapwardenThread under = of((Thread) carrier);
        HeapwardenThread state = (HeapwardenThread) found;
        state.counts = under == null ? HeapwardenTable.NONE : under.counts;
        if (state.ownContexts == null) {
            state.contexts = under == null ? null : under.ownContexts;
        }
    }

    /** The context class loader of a thread, or its scope, has changed. */
    public static void changed(Thread thread) {
        Object found = UNSAFE.getReference(thread, PLACE);
        if (found instanceof HeapwardenThread) {
            HeapwardenThread state = (HeapwardenThread) found;
            state.free = HeapwardenThread.UNKNOWN;
            state.account = HeapwardenThread.UNKNOWN;
        }
    }

    /** As {@link #changed(Thread)}, of the calling thread. */
    public static void changed() {
        changed(Thread.currentThread());
    }

    // ---- counting ------------------------------------------------------------------------

    @ForceInline
    private static long aligned(long bytes) {
        return (bytes + alignedMask) & ~(long) alignedMask;
    }

    /** Of classes whose objects are not all of one size, which is what {@link #SIZES} has none for. */
    @DontInline
    private static void add(int number, long bytes, long objects) {
        if (!addAtHome(number, bytes, objects)) {
            slow(number, bytes, objects);
        }
    }

    /** Adds where the key is looked for first; false if it is not there. */
    @ForceInline
    private static boolean addAtHome(int number, long bytes, long objects) {
        Object found = UNSAFE.getReference(Thread.currentThread(), PLACE);
        if (found instanceof HeapwardenThread) {
            HeapwardenThread state = (HeapwardenThread) found;
            // Of an account of another moment it is the key of nothing.
            long key = HeapwardenTable.key(state.account ^ moment, number);
            long[] table = state.counts;
            int at = HeapwardenTable.home(table, key);
            if (table[at] == key) {
                table[at + 1] += bytes;
                table[at + 2] += objects;
                return true;
            }
        }
        return false;
    }

    private static long arrayBytes(Object array) {
        if (array instanceof Object[]) {
            return aligned(referencesBegin + (long) reference * ((Object[]) array).length);
        } else if (array instanceof byte[]) {
            return aligned(bytesBegin + (long) ((byte[]) array).length);
        } else if (array instanceof boolean[]) {
            return aligned(bytesBegin + (long) ((boolean[]) array).length);
        } else if (array instanceof char[]) {
            return aligned(shortsBegin + 2L * ((char[]) array).length);
        } else if (array instanceof short[]) {
            return aligned(shortsBegin + 2L * ((short[]) array).length);
        } else if (array instanceof int[]) {
            return aligned(intsBegin + 4L * ((int[]) array).length);
        } else if (array instanceof float[]) {
            return aligned(intsBegin + 4L * ((float[]) array).length);
        } else if (array instanceof long[]) {
            return aligned(longsBegin + 8L * ((long[]) array).length);
        }
        return aligned(longsBegin + 8L * ((double[]) array).length);
    }

    @DontInline
    private static int measure(Class<?> made, int number) {
        int size = size(made);
        SIZES[number] = size;
        return size;
    }

    /** The number of a class that is known as an object. */
    private static int numberOf(Class<?> made) {
        if (made.isArray()) {
            int number = numberOfPlainArray(made);
            if (number != 0) {
                return number;
            }
        }
        int first = System.identityHashCode(made) & KNOWN.length - 1;
        HeapwardenClass known = KNOWN[first];
        if (known != null && known.refersTo(made)) {
            return known.number;
        }
        known = KNOWN[first ^ 1];
        if (known != null && known.refersTo(made)) {
            return known.number;
        }
        return learn(made, first);
    }

    private static int numberOfPlainArray(Class<?> made) {
        if (made == byte[].class) {
            return BYTES;
        } else if (made == Object[].class) {
            return OBJECTS;
        } else if (made == char[].class) {
            return CHARS;
        } else if (made == int[].class) {
            return INTS;
        } else if (made == long[].class) {
            return LONGS;
        } else if (made == boolean[].class) {
            return BOOLEANS;
        } else if (made == short[].class) {
            return SHORTS;
        } else if (made == float[].class) {
            return FLOATS;
        }
        return made == double[].class ? DOUBLES : 0;
    }

    /** Asks for the number of a class and keeps it, in the place of another if need be. */
    @DontInline
    private static int learn(Class<?> made, int first) {
        int number = number(made);
        HeapwardenClass before = KNOWN[first];
        int at = before == null || before.refersTo(null) ? first : first ^ 1;
        // Its number is final: a thread that sees it sees that too.
        KNOWN[at] = new HeapwardenClass(made, number);
        return number;
    }

    /** As {@link #slow}. Before the first of a class is counted, its size is known. */
    @DontInline
    private static void slowInstance(Class<?> made, int number) {
        int size = SIZES[number];
        slow(number, size != 0 ? size : measure(made, number), 1);
    }

    /** Not at the place where it is looked for first, or the first of its thread, or since something changed. */
    @DontInline
    private static void slow(int number, long bytes, long objects) {
        Thread thread = Thread.currentThread();
        HeapwardenThread state = of(thread);
        if (state == null) {
            // It is being made: its constructor has not come to its lock.
            lost += objects;
            return;
        }
        if (!isKnown(state.account)) {
            settle(state);
        }
        int account = state.account ^ moment;
        if (!isKnown(state.account)) {
            // The moment has just passed: this object still counts for the account of before.
            account &= (1 << FIRST_MOMENT_BIT) - 1;
        }
        long key = HeapwardenTable.key(account, number);
        // The bytes that the table is to have: see there.
        long more = bytes - objects * SIZES[number];
        if (HeapwardenTable.add(state.counts, key, more, objects)) {
            return;
        }
        long[] table = room(thread, state);
        if (table == null
                || !HeapwardenTable.put(table, key, more, objects)
                        && !HeapwardenTable.put(table, HeapwardenTable.other(key), bytes, objects)) {
            lost += objects;
        }
    }

    /** Whether it is an account of this moment. */
    @ForceInline
    private static boolean isKnown(int account) {
        return (account ^ moment) >>> FIRST_MOMENT_BIT == 0;
    }

    /** The calling thread asks whom it allocates for, and whether code can change that. */
    private static void settle(HeapwardenThread state) {
        int now = moment;
        int answer = account();
        state.free = (answer & 1) == 0 ? now : HeapwardenThread.UNKNOWN;
        state.account = answer & ~1 ^ now;
    }

    /** The state of a thread; null while it is being made. */
    static HeapwardenThread of(Thread thread) {
        Object found = UNSAFE.getReference(thread, PLACE);
        if (found instanceof HeapwardenThread) {
            return (HeapwardenThread) found;
        }
        if (found == null) {
            return null;
        }
        HeapwardenThread state = new HeapwardenThread();
        UNSAFE.putReference(thread, PLACE, state);
        return state;
    }

    /** The table of a thread, with room for one more; null if it has no carrier yet. */
    private static long[] room(Thread thread, HeapwardenThread state) {
        Thread owner = thread;
        HeapwardenThread under = state;
        if (thread.getClass() == VIRTUAL) {
            owner = (Thread) UNSAFE.getReference(thread, CARRIER);
            under = owner == null ? null : of(owner);
            if (under == null) {
                return null;
            }
        }
        long[] table = HeapwardenTable.follower(under.counts);
        if (table != under.counts) {
            register(new HeapwardenCounts(table, owner));
            under.counts = table;
        }
        state.counts = table;
        return table;
    }

    private static void register(HeapwardenCounts mine) {
        HeapwardenCounts head;
        do {
            head = counts;
            mine.next = head;
        } while (!UNSAFE.compareAndSetReference(COUNTS_BASE, COUNTS, head, mine));
    }

    // ---- what the agent calls ------------------------------------------------------------

    /** Measures arrays. Once, before anything is counted, with the native methods bound. */
    static void prepare() {
        // A native thread that attaches itself cannot wait for a class while its Thread is made: the JVM would crash.
        UNSAFE.ensureClassInitialized(HeapwardenThread.class);
        UNSAFE.ensureClassInitialized(HeapwardenCounts.class);
        UNSAFE.ensureClassInitialized(HeapwardenTable.class);
        UNSAFE.ensureClassInitialized(HeapwardenClass.class);
        int none = sizeOf(new byte[0]);
        int length = 1;
        while (sizeOf(new byte[length]) == none) {
            length++;
        }
        alignedMask = sizeOf(new byte[length]) - none - 1;
        bytesBegin = none - length + 1;
        for (length = 1; sizeOf(new short[length]) == sizeOf(new short[0]); length++) {}
        shortsBegin = sizeOf(new short[0]) - 2 * (length - 1);
        for (length = 1; sizeOf(new int[length]) == sizeOf(new int[0]); length++) {}
        intsBegin = sizeOf(new int[0]) - 4 * (length - 1);
        for (length = 1; sizeOf(new long[length]) == sizeOf(new long[0]); length++) {}
        longsBegin = sizeOf(new long[0]) - 8 * (length - 1);
        // A multiple of every alignment that HotSpot has.
        int many = 1 << 10;
        reference = (sizeOf(new Object[many]) - sizeOf(new Object[0])) / many;
        for (length = 1; sizeOf(new Object[length]) == sizeOf(new Object[0]); length++) {}
        referencesBegin = sizeOf(new Object[0]) - reference * (length - 1);
    }

    /** Hands {@link #total} what was counted since the start, by account and class. On one thread at a time. */
    static void sum() {
        HeapwardenCounts head = counts;
        // The head stays, because threads put theirs before it.
        HeapwardenCounts before = head;
        while (before != null && before.next != null) {
            HeapwardenCounts each = before.next;
            if (each.owner.isAlive()) {
                before = each;
            } else {
                retired = HeapwardenTable.sum(each.values, SIZES, retired);
                before.next = each.next;
            }
        }
        // The same array each time: what the agent allocates is in the JVM's figure.
        long[] all = HeapwardenTable.sum(retired, null, HeapwardenTable.emptied(together));
        for (HeapwardenCounts each = head; each != null; each = each.next) {
            all = HeapwardenTable.sum(each.values, SIZES, all);
        }
        together = all;
        for (int at = 0; at < all.length; at += HeapwardenTable.STRIDE) {
            if (all[at] != 0) {
                total(all[at], all[at + 1], all[at + 2]);
            }
        }
        total(-1, 0, lost);
    }

    /** The account of a number is another. */
    static void belongs(int number, int account) {
        ACCOUNTS[number] = account;
    }

    /**
     * All threads ask again whom they allocate for, virtual ones too: a policy was put in force, or a loader
     * named. On one thread at a time.
     */
    static void allChanged() {
        int number = (moment >>> FIRST_MOMENT_BIT) + 1;
        moment = number % MOMENTS << FIRST_MOMENT_BIT;
    }

    /** Twice the number of the purse that the calling thread allocates for; odd if code cannot change it. */
    private static native int account();

    /** Tells the sum of a key of {@link HeapwardenTable}; for -1, the objects that were lost. */
    private static native void total(long key, long bytes, long objects);

    /** The number of a class; {@link #OTHER} if none is left for it. */
    private static native int number(Class<?> made);

    /** Twice the number of the purse of code with this number; negative if it has none. */
    private static native int owner(int number);

    private static native int size(Class<?> made);

    private static native int sizeOf(Object made);
}
