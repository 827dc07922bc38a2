package dev.heapwarden;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * Hands a listener its events. The agent's half holds it weakly; it is held here, by the listener's
 * class, and so lives as long as the code that registered it.
 */
final class Receiver implements Consumer<Object[]> {
    /** By the class that a listener belongs to; that of a lambda may be unloaded on its own. */
    private static final ClassValue<Set<Receiver>> HELD =
            new ClassValue<>() {
                @Override
                protected Set<Receiver> computeValue(Class<?> type) {
                    return ConcurrentHashMap.newKeySet();
                }
            };

    private final PressureListener listener;

    private Receiver(PressureListener listener) {
        this.listener = listener;
    }

    /** Makes one and holds it. */
    static Receiver hold(PressureListener listener) {
        Receiver made = new Receiver(listener);
        made.holder().add(made);
        return made;
    }

    /** Lets go of one. */
    static void release(Consumer<Object[]> receiver) {
        if (receiver instanceof Receiver) {
            ((Receiver) receiver).holder().remove(receiver);
        }
    }

    @Override
    public void accept(Object[] event) {
        int kind = (Integer) event[2];
        if (Pressure.known(kind)) {
            listener.onPressure(new Pressure((String) event[0], kind, (long[]) event[3]));
        }
    }

    private Set<Receiver> holder() {
        return HELD.get(listener.getClass().getNestHost());
    }
}
