package com.acme.billing;

import victim.Station;

/** A frame of this package. */
public final class Desk implements Station {
    @Override
    public void run(Runnable task) {
        task.run();
    }
}
