package org.lib.json;

import victim.PackageFrame;

/** A frame of this package. */
public final class Desk implements PackageFrame {
    @Override
    public void run(Runnable task) {
        task.run();
    }
}
