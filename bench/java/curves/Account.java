package curves;

import curves.tenant.Tenant;
import java.io.IOException;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Fills an account with what it knows to the byte, among garbage, several times over, and waits each
 * time until the bench has read what the agent says of it.
 */
final class Account {
    private static final int SHORTEST = 64;
    private static final int LONGEST = 2048;
    /** Of so many arrays one is held. */
    private static final int ONE_OF = 4;

    private final ArraySizes sizes = new ArraySizes();
    private final byte[][] held;
    private final long bytes;
    private long heldBytes;
    private long allocatedBytes;

    private Account(long bytes) {
        this.bytes = bytes;
        this.held = new byte[(int) (bytes / SHORTEST)][];
    }

    /** Arguments: bytes to hold, rounds. */
    public static void main(String[] args) throws IOException {
        Account account = new Account(Long.parseLong(args[0]));
        int rounds = Integer.parseInt(args[1]);
        Main.pause("ready");
        // Code and the agent's tables are warm after the first, which is neither timed nor read.
        account.fill(rounds);
        account.allocatedBytes = 0;
        Main.pause("begin");
        long wallNs = 0;
        long cpuNs = 0;
        for (int round = 0; round < rounds; round++) {
            long cpuBefore = Main.cpuNs();
            long wallBefore = System.nanoTime();
            account.fill(round);
            System.gc();
            wallNs += System.nanoTime() - wallBefore;
            cpuNs += Main.cpuNs() - cpuBefore;
            System.out.println("{\"true_bytes\":" + account.heldBytes + "}");
            Main.pause("held");
        }
        Main.report(rounds, account.heldBytes, account.allocatedBytes, wallNs, cpuNs);
        Main.pause("end");
    }

    /** Lets go of what it holds and holds as much anew, of arrays whose lengths vary with the seed. */
    private void fill(long seed) {
        Arrays.fill(held, null);
        heldBytes = 0;
        SplittableRandom random = new SplittableRandom(seed);
        for (int count = 0; heldBytes < bytes; ) {
            int length = random.nextInt(SHORTEST, LONGEST);
            byte[] array = Tenant.array(length);
            allocatedBytes += sizes.bytes(length);
            if (random.nextInt(ONE_OF) == 0) {
                held[count++] = array;
                heldBytes += sizes.bytes(length);
            }
        }
    }
}
