package dev.heapwarden.agent;

import java.util.function.BooleanSupplier;

/** What every request asks first. One native call; allocates nothing. */
final class AnyShut implements BooleanSupplier {
    static final AnyShut ANY_SHUT = new AnyShut();

    private AnyShut() {}

    @Override
    public boolean getAsBoolean() {
        return Natives.anyShut();
    }
}
