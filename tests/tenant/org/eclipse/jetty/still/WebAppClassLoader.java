package org.eclipse.jetty.still;

import tenant.Trap;

/** A tenant's loader under a name like Jetty's, whose getter is static: no getter at all. */
public class WebAppClassLoader extends ClassLoader {
    public WebAppClassLoader() {
        super(WebAppClassLoader.class.getClassLoader());
    }

    public static Object getContext() {
        return Trap.spring();
    }
}
