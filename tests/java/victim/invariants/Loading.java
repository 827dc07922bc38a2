package victim.invariants;

import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.IntSupplier;
import victim.tenant.ConvertingLoader;
import victim.tenant.EagerLoader;
import victim.tenant.TracingLoader;

/** Initialising, linking, loading and defining classes: each trial a class that nobody has used. */
final class Loading implements Row {
    private static final int ELEVEN = 11;

    private final Callable<IntSupplier> maker;
    private IntSupplier[] fresh;

    private Loading(Callable<IntSupplier> maker) {
        this.maker = maker;
    }

    static void addTo(Map<String, Callable<Row>> rows) {
        rows.put(
                "class-initialiser",
                () -> new Loading(() -> Code.uninitialised("victim.tenant.Initialised")));
        rows.put("lambda", () -> new Loading(() -> Code.fresh("victim.tenant.Lambda")));
        rows.put(
                "concatenation", () -> new Loading(() -> Code.fresh("victim.tenant.Concatenation")));
        rows.put("dynamic-constant", () -> new Loading(Code::freshConstant));
        rows.put("find-class-before", () -> new Loading(() -> new EagerLoader().user()));
        rows.put("find-class-after", () -> new Loading(() -> new TracingLoader().user()));
        rows.put("find-class-converted", () -> new Loading(() -> new ConvertingLoader().user()));
    }

    @Override
    public void prepare(int trials) throws Exception {
        fresh = new IntSupplier[trials];
        for (int trial = 0; trial < trials; trial++) {
            fresh[trial] = maker.call();
        }
    }

    @Override
    public void during(int trial) {
        expect(fresh[trial].getAsInt());
    }

    @Override
    public String after(int trial) {
        expect(fresh[trial].getAsInt());
        return null;
    }

    private static void expect(int value) {
        if (value != ELEVEN) {
            throw new AssertionError("a wrong answer: " + value);
        }
    }
}
