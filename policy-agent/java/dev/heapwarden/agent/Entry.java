package dev.heapwarden.agent;

import java.util.function.BiPredicate;

/** The first question of every request. One native call; allocates nothing once its route and its thread are known. */
final class Entry implements BiPredicate<Object, Object> {
    private final Door door;

    Entry(Door door) {
        this.door = door;
    }

    /** Whether any door is shut. */
    @Override
    public boolean test(Object at, Object request) {
        return door.comes(at, request);
    }
}
