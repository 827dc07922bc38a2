package org.lib.xml;

import victim.Station;

/** A frame of this package. */
public final class Desk implements Station {
    @Override
    public void run(Runnable task) {
        task.run();
    }
}
