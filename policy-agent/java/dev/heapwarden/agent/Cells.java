package dev.heapwarden.agent;

import java.util.concurrent.atomic.AtomicInteger;

/** Where each thread's {@link Cell} is. */
public final class Cells {
    /** Has no initial value: a thread has an entry with a cell in it, or with null, or none. */
    static final ThreadLocal<Cell> CELLS = new ThreadLocal<>();

    /** The scope that children of this thread inherit; in a child, the one it inherited. */
    static final InheritableThreadLocal<Inherited> INHERITED = new InheritableThreadLocal<>();

    /** Numbers of cells. Wraps; two cells with one number could close each other's scopes. */
    private static final AtomicInteger NUMBERS = new AtomicInteger();

    /** Whether any thread ever let its children inherit. Never reset. */
    private static volatile boolean inheriting;

    private Cells() {}

    /** The calling thread's cell, made if there is none. */
    static Cell own() {
        Cell cell = CELLS.get();
        return cell == null ? make() : cell;
    }

    /** Makes the calling thread's cell. */
    static Cell make() {
        Inherited inherited = inherited();
        Cell cell = new Cell(number(), inherited == null ? null : inherited.context);
        CELLS.set(cell);
        return cell;
    }

    /** Returns the scope that the calling thread passes on, or, if it has no cell, the one it inherited. May be null. */
    static Inherited inherited() {
        // A look at an unset thread-local leaves an entry in the thread.
        return inheriting ? INHERITED.get() : null;
    }

    /** Children of this thread inherit from this context from now on; null: nothing. */
    static void pass(Context context) {
        inheriting = true;
        if (context == null) {
            INHERITED.remove();
        } else {
            INHERITED.set(context.inherited);
        }
    }

    /** Not 0, which stands for no cell. */
    private static int number() {
        int number = NUMBERS.incrementAndGet();
        return number == 0 ? NUMBERS.incrementAndGet() : number;
    }
}
