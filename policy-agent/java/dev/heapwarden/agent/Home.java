package dev.heapwarden.agent;

import java.lang.ref.WeakReference;

/**
 * Whose copy of the API calls: its class loader, weakly. Each copy gets one from {@link Bridge#home}
 * and hands it in with every call.
 */
public final class Home {
    /** The loader, where it can stand for a service. */
    final WeakReference<ClassLoader> loader;

    Home(ClassLoader own) {
        this.loader = new WeakReference<>(Loaders.plain(own) ? null : own);
    }
}
