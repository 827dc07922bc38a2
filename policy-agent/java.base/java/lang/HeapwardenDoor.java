package java.lang;

import java.util.function.IntConsumer;
import java.util.function.IntUnaryOperator;

/**
 * Asked by inserted code where a policy has put a door: at the entry of a method, before anything of the
 * method runs, and when the method is left.
 *
 * <p>It is in {@code java.lang} so that the classes of every loader and module find it. Its methods are
 * public for that reason alone. It names no class of the agent's; whoever answers is put in by
 * {@link #install}.
 */
public final class HeapwardenDoor {
    /** Written first, so that who is asked is told as well. */
    private static volatile IntConsumer told;

    /** Null: everybody goes in. */
    private static volatile IntUnaryOperator asked;

    private HeapwardenDoor() {}

    /** Whom to ask and to tell: both are this object. For the agent, by JNI. */
    static void install(Object both) {
        told = (IntConsumer) both;
        asked = (IntUnaryOperator) both;
    }

    /**
     * A method with a door is entered. Throws if the call is turned away.
     *
     * @param door the door's number
     * @return what {@link #leave} wants
     */
    public static int enter(int door) {
        IntUnaryOperator whom = asked;
        return whom == null ? 0 : whom.applyAsInt(door);
    }

    /** The method is left, in whatever way. */
    public static void leave(int token) {
        if (token != 0) {
            told.accept(token);
        }
    }
}
