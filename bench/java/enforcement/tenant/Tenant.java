package enforcement.tenant;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A tenant that knows to the byte what it holds, and when that crossed its limit.
 *
 * <p>It holds arrays in chains of blocks, one chain a thread; the blocks count as well. Everything
 * here allocates in frames of this package, which are its account's own.
 */
public final class Tenant {
    private static final int SLOTS = 256;

    private final int length;
    private final long limitBytes;
    private final long arrayBytes;
    private final long blockBytes;
    private final AtomicLong heldBytes = new AtomicLong();
    private final AtomicLong crossedNs = new AtomicLong();
    private final AtomicReference<Refusal> first = new AtomicReference<>();
    private final List<Chain> chains = new ArrayList<>();
    private Object latest;

    /** Blocks whose first slot is the block before. */
    private static final class Chain {
        private Object[] block;
        private int used;
    }

    /** The first refusal of a thread: its error, the bytes held then, and the time. */
    public static final class Refusal {
        /** The error. */
        public final Throwable error;

        /** Bytes held. */
        public final long heldBytes;

        /** By the nano clock. */
        public final long atNs;

        private Refusal(Throwable error, long heldBytes, long atNs) {
            this.error = error;
            this.heldBytes = heldBytes;
            this.atNs = atNs;
        }
    }

    /** A tenant whose arrays have this length; they and its blocks take so many bytes. */
    public Tenant(int length, long limitBytes, long arrayBytes, long blockBytes) {
        this.length = length;
        this.limitBytes = limitBytes;
        this.arrayBytes = arrayBytes;
        this.blockBytes = blockBytes;
    }

    /** A block as the chains have them. */
    public static Object[] block() {
        return new Object[SLOTS];
    }

    /** Bytes of all arrays and blocks. */
    public long heldBytes() {
        return heldBytes.get();
    }

    /** When what is held first reached the limit, by the nano clock; 0 if it did not. */
    public long crossedNs() {
        return crossedNs.get();
    }

    /** The first refusal, or null. */
    public Refusal refusal() {
        return first.get();
    }

    /** Holds more, until so many bytes are held by all or this thread is refused. */
    public void hold(long mostBytes) {
        try {
            Chain chain = new Chain();
            synchronized (chains) {
                chains.add(chain);
            }
            while (heldBytes.get() < mostBytes) {
                if (chain.used == 0 || chain.used == SLOTS) {
                    Object[] next = block();
                    next[0] = chain.block;
                    chain.block = next;
                    chain.used = 1;
                    add(blockBytes);
                }
                chain.block[chain.used] = new byte[length];
                chain.used++;
                add(arrayBytes);
            }
        } catch (Throwable error) {
            first.compareAndSet(null, new Refusal(error, heldBytes.get(), System.nanoTime()));
        }
    }

    /** Lets go of the newest blocks until at most so many bytes are held. */
    public void dropTo(long mostBytes) {
        synchronized (chains) {
            while (heldBytes.get() > mostBytes) {
                Chain chain = chains.get(chains.size() - 1);
                if (chain.block == null) {
                    chains.remove(chains.size() - 1);
                    continue;
                }
                add(-blockBytes - (chain.used - 1) * arrayBytes);
                chain.block = (Object[]) chain.block[0];
                chain.used = chain.block == null ? 0 : SLOTS;
            }
        }
    }

    /** Makes this many arrays and forgets each; false if it is refused. */
    public boolean churn(int count) {
        try {
            for (int i = 0; i < count; i++) {
                latest = new byte[length];
            }
            return latest != null;
        } catch (Throwable error) {
            first.compareAndSet(null, new Refusal(error, heldBytes.get(), System.nanoTime()));
            return false;
        }
    }

    private void add(long bytes) {
        long held = heldBytes.addAndGet(bytes);
        if (held >= limitBytes && crossedNs.get() == 0) {
            crossedNs.compareAndSet(0, System.nanoTime());
        }
    }
}
