package com.acme.place.jobs;

import com.acme.place.store.Entries;

/** A run of background work that allocates one object. */
public final class Evictor implements Runnable {
    @Override
    public void run() {
        Entries.make();
    }
}
