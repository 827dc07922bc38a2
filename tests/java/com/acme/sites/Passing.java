package com.acme.sites;

import java.util.function.Consumer;
import java.util.function.Supplier;

/** Code that is unloaded while what it made is kept. */
public final class Passing implements Consumer<Consumer<Object>> {
    @Override
    public void accept(Consumer<Object> keeper) {
        Supplier<Item> maker = Item::new;
        for (int left = 20; left > 0; left--) {
            keeper.accept(new Item()); // site: passing
            keeper.accept(maker.get()); // site: maker
        }
    }
}
