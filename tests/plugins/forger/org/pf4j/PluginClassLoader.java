package org.pf4j;

import java.net.URL;
import java.net.URLClassLoader;

/** An application's class that looks like PF4J's, and says that it is a neighbour's plugin. */
public final class PluginClassLoader extends URLClassLoader {
    final PluginDescriptor pluginDescriptor = new DefaultPluginDescriptor("neighbour");
    final boolean closed = false;

    public PluginClassLoader(URL[] urls, ClassLoader parent) {
        super(urls, parent);
    }
}
