package dev.heapwarden.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class CellTest {
    private final Ledger ledger = new Ledger();

    @AfterEach
    void passNothingOn() {
        Cells.pass(null);
    }

    private Context context(String name) {
        return new Context(ledger, name, null);
    }

    @Test
    void the_innermost_scope_pays() {
        Cell cell = new Cell(1, null);
        Context outer = context("outer");
        Context inner = context("inner");
        long first = cell.push(outer, false);
        long second = cell.push(inner, false);
        assertEquals(inner.purse, cell.purse);
        assertEquals(Cell.CLOSED, cell.pop(second));
        assertEquals(outer.purse, cell.purse);
        assertEquals(Cell.CLOSED, cell.pop(first));
        assertEquals(0, cell.purse);
    }

    @Test
    void what_was_inherited_pays_where_no_scope_is_open() {
        Context base = context("parent's");
        Cell cell = new Cell(1, base);
        assertEquals(base.purse, cell.purse);
        long token = cell.push(Context.NONE, false);
        assertEquals(0, cell.purse, "a task wrapped outside of all scopes has none");
        cell.pop(token);
        assertEquals(base.purse, cell.purse);
        assertSame(base, cell.top());
    }

    @Test
    void closing_out_of_order_leaves_the_innermost_one_paying() {
        Cell cell = new Cell(1, null);
        Context outer = context("outer");
        Context inner = context("inner");
        long first = cell.push(outer, false);
        long second = cell.push(inner, false);
        assertEquals(Misuse.ORDER, cell.pop(first));
        assertEquals(inner.purse, cell.purse);
        assertEquals(Misuse.TWICE, cell.pop(first));
        assertEquals(Cell.CLOSED, cell.pop(second));
        assertEquals(Misuse.TWICE, cell.pop(second));
        assertEquals(0, cell.purse);
    }

    @Test
    void the_sixty_fifth_scope_is_not_entered() {
        Cell cell = new Cell(1, null);
        Context context = context("deep");
        for (int depth = 0; depth < Cell.MAX_DEPTH; depth++) {
            assertNotEquals(0, cell.push(context, false));
        }
        int before = cell.purse;
        assertEquals(0, cell.push(context("deeper"), true));
        assertEquals(before, cell.purse);
        assertNull(Cells.INHERITED.get(), "it is not passed on either");
    }

    @Test
    void work_that_was_let_in_is_inside_until_the_scope_it_asked_in_is_closed() {
        Cell cell = new Cell(1, null);
        cell.letIn(-5);
        assertEquals(0, cell.letIn, "no scope is open");
        long token = cell.push(context("tenant"), false);
        cell.letIn(-5);
        long inner = cell.push(context("inner"), false);
        assertEquals(-5, cell.letIn);
        cell.pop(inner);
        assertEquals(-5, cell.letIn);
        cell.pop(token);
        assertEquals(0, cell.letIn);
        cell.letIn = 1;
        token = cell.push(context("tenant"), false);
        cell.letIn(-5);
        assertEquals(1, cell.letIn, "a door watches this thread");
        cell.pop(token);
        assertEquals(1, cell.letIn);
    }

    @Test
    void a_token_tells_its_cell() {
        Cell mine = new Cell(-7, null);
        Cell other = new Cell(8, null);
        long token = mine.push(context("mine"), false);
        assertTrue(mine.owns(token));
        assertTrue(!other.owns(token));
    }

    @Test
    void the_scope_entered_last_is_recalled_by_name_home_and_loader() {
        ClassLoader loader = new ClassLoader() {};
        Home home = new Home(loader);
        Cell cell = new Cell(1, null);
        Context context = context("tenant");
        assertNull(cell.recall(home, "tenant", loader));
        Names names = new Names(ledger, new WeakReference<>(loader), 10);
        cell.remember(home, "tenant", names.loader, names, context);
        assertSame(context, cell.recall(home, "tenant", loader));
        assertSame(context, cell.recall(home, new StringBuilder("tenant").toString(), loader));
        assertNull(cell.recall(home, "other", loader));
        assertNull(cell.recall(new Home(loader), "tenant", loader));
        assertNull(cell.recall(home, "tenant", new ClassLoader() {}));
        assertSame(names, cell.names(home, loader));
        assertNull(cell.names(new Home(loader), loader));
        assertNull(cell.names(home, new ClassLoader() {}));
    }

    @Test
    void remembering_a_scope_does_not_keep_its_purse() throws InterruptedException {
        ClassLoader loader = new ClassLoader() {};
        Home home = new Home(loader);
        Cell cell = new Cell(1, null);
        Names gone = new Names(ledger, new WeakReference<>(loader), 10);
        cell.remember(home, "gone", gone.loader, gone, gone.make("gone", 0));
        gone = null;
        Collected.await(() -> cell.recall(home, "gone", loader) == null);
        assertNull(cell.names(home, loader));
    }

    @Test
    void children_inherit_what_was_passed_on() throws InterruptedException {
        Cell cell = Cells.make();
        Context context = context("family");
        long token = cell.push(context, true);
        Context[] seen = new Context[2];
        Thread child =
                new Thread(
                        () -> {
                            seen[0] = Cells.inherited().context;
                            seen[1] = Cells.make().top();
                        });
        cell.pop(token);
        Thread stranger = new Thread(() -> assertNull(Cells.inherited()));
        child.start();
        child.join();
        stranger.start();
        stranger.join();
        assertSame(context, seen[0]);
        assertSame(context, seen[1]);
        Cells.CELLS.remove();
    }

    /** One open scope of the model. */
    private static final class Open {
        final long token;
        final Context context;
        final boolean passed;
        int letIn;

        Open(long token, Context context, boolean passed) {
            this.token = token;
            this.context = context;
            this.passed = passed;
        }
    }

    /** Any order of entering and closing, held against a list. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void behaves_as_a_list_of_open_scopes(long seed) {
        Random random = new Random(seed);
        Context base = seed % 2 == 0 ? context("base") : null;
        Cells.pass(base);
        Cell cell = new Cell((int) seed, base);
        List<Open> model = new ArrayList<>();
        List<Long> closed = new ArrayList<>();
        for (int step = 0; step < 20_000; step++) {
            int choice = random.nextInt(10);
            if (choice < 5) {
                Context context = context("scope");
                boolean passed = random.nextInt(4) == 0;
                long token = cell.push(context, passed);
                assertEquals(model.size() == Cell.MAX_DEPTH, token == 0);
                if (token != 0) {
                    model.add(new Open(token, context, passed));
                }
                if (random.nextInt(4) == 0) {
                    int mark = random.nextInt() | Integer.MIN_VALUE;
                    cell.letIn(mark);
                    model.get(model.size() - 1).letIn = mark;
                }
            } else if (choice < 9 && !model.isEmpty()) {
                boolean innermost = random.nextBoolean();
                int at = innermost ? model.size() - 1 : random.nextInt(model.size());
                int expected = at == model.size() - 1 ? Cell.CLOSED : Misuse.ORDER;
                Open open = model.remove(at);
                assertEquals(expected, cell.pop(open.token));
                closed.add(open.token);
            } else if (!closed.isEmpty()) {
                long token = closed.get(random.nextInt(closed.size()));
                assertEquals(Misuse.TWICE, cell.pop(token));
            }
            assertMatches(model, cell, base);
        }
    }

    private static void assertMatches(List<Open> model, Cell cell, Context base) {
        assertEquals(model.size(), cell.depth());
        Context top = model.isEmpty() ? base : model.get(model.size() - 1).context;
        assertSame(top, cell.top());
        assertEquals(top == null ? 0 : top.purse, cell.purse);
        Context passed = base;
        int letIn = 0;
        for (Open open : model) {
            passed = open.passed ? open.context : passed;
            letIn = open.letIn == 0 ? letIn : open.letIn;
        }
        assertEquals(letIn, cell.letIn);
        Inherited inherited = Cells.INHERITED.get();
        assertSame(passed, inherited == null ? null : inherited.context);
    }
}
