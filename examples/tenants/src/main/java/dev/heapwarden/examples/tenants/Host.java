package dev.heapwarden.examples.tenants;

import dev.heapwarden.AccountReading;
import dev.heapwarden.Heapwarden;
import dev.heapwarden.Pressure;
import dev.heapwarden.Registration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Runs the tasks of three tenants on one executor until everything has been seen, prints what came of
 * it, and ends.
 */
public final class Host {
    private static final int MEBIBYTE = 1 << 20;

    /** Refusals of the hostile tenant that are enough to have seen. */
    private static final int REFUSALS_SHOWN = 10;

    /** A hostile tenant whom nobody stops is done with this. */
    private static final int HOARD_MEBIBYTES = 96;

    /** A minute: by then everything was seen, or never will be. */
    private static final int MAX_ROUNDS = 1_200;
    private static final long ROUND_MILLIS = 50;

    private final Tenant frugal = new Tenant("tenant-ada", 8);
    private final Tenant caching = new Tenant("tenant-bo", 24);
    private final Tenant hostile = new Tenant("tenant-mallory", HOARD_MEBIBYTES);
    private final List<Tenant> tenants = List.of(frugal, caching, hostile);

    private Host() {}

    /** Runs it; takes no arguments. */
    public static void main(String[] arguments) throws Exception {
        new Host().run();
    }

    private void run() throws Exception {
        boolean active = Heapwarden.isActive();
        System.out.println(
                active ? "Heapwarden is here." : "No Heapwarden here: nobody is measured or refused.");
        ExecutorService executor = Heapwarden.wrap(Executors.newFixedThreadPool(4));
        // The listener runs on a thread of its own, never on one that allocates.
        Registration listener = Heapwarden.listen(caching.name, this::onPressure);
        int rounds = 0;
        while (rounds < MAX_ROUNDS && !seen(active)) {
            rounds++;
            round(executor);
            Thread.sleep(ROUND_MILLIS);
        }
        executor.shutdown();
        if (!executor.awaitTermination(1, TimeUnit.MINUTES)) {
            throw new IllegalStateException("a task does not end");
        }
        listener.close();
        report(active);
    }

    /** One task of each tenant, side by side. */
    private void round(ExecutorService executor) throws Exception {
        List<Future<?>> tasks = new ArrayList<>();
        for (Tenant tenant : tenants) {
            tasks.add(tenant.submit(executor));
        }
        for (int i = 0; i < tasks.size(); i++) {
            tenants.get(i).await(tasks.get(i));
        }
    }

    /** Whether the tenants have shown everything. */
    private boolean seen(boolean active) {
        return active
                ? hostile.refused() >= REFUSALS_SHOWN && caching.shed() >= 1
                : hostile.store.bytes() >= (long) HOARD_MEBIBYTES * MEBIBYTE;
    }

    private void onPressure(Pressure pressure) {
        if (pressure.kind() == Pressure.Kind.SOFT_LIMIT) {
            long before = caching.store.bytes();
            caching.shedHalf();
            System.out.printf(
                    "%s passed its soft limit: its cache is cut from %.1f to %.1f MiB%n",
                    pressure.account(), mebibytes(before), mebibytes(caching.store.bytes()));
        }
    }

    /** Prints the truth beside the accounts, after a collection. */
    private void report(boolean active) throws InterruptedException {
        List<Optional<AccountReading>> readings = active ? settled() : List.of();
        System.out.printf(
                "%n%-14s %6s %8s %5s %10s   %s%n",
                "", "done", "refused", "shed", "holds MiB", "account MiB ± standard error");
        for (int i = 0; i < tenants.size(); i++) {
            Tenant tenant = tenants.get(i);
            String account =
                    active ? readings.get(i).map(Host::account).orElse("has no account") : "-";
            System.out.printf(
                    "%-14s %6d %8d %5d %10.2f   %s%n",
                    tenant.name,
                    tenant.done(),
                    tenant.refused(),
                    tenant.shed(),
                    mebibytes(tenant.store.bytes()),
                    account);
        }
    }

    private static String account(AccountReading reading) {
        return String.format(
                "%.2f ± %.2f %s",
                mebibytes(reading.liveBytes()),
                mebibytes(reading.standardErrorBytes()),
                reading.state());
    }

    /** The tenants' accounts when all garbage is refunded: nothing is charged that is not live. */
    private List<Optional<AccountReading>> settled() throws InterruptedException {
        List<Optional<AccountReading>> readings = List.of();
        for (int i = 0; i < 20; i++) {
            System.gc();
            // A reading may be a second old.
            Thread.sleep(1_500);
            readings = tenants.stream().map(tenant -> Heapwarden.account(tenant.name)).toList();
            boolean settled =
                    readings.stream()
                            .flatMap(Optional::stream)
                            .allMatch(reading -> reading.chargedBytes() == reading.liveBytes());
            if (settled) {
                break;
            }
        }
        return readings;
    }

    private static double mebibytes(long bytes) {
        return (double) bytes / MEBIBYTE;
    }
}
