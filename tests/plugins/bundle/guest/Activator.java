package guest;

import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Makes a bundle one that does something of itself. */
public final class Activator implements BundleActivator {
    @Override
    public void start(BundleContext context) {}

    @Override
    public void stop(BundleContext context) {}
}
