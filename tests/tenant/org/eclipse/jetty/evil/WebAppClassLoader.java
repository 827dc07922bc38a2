package org.eclipse.jetty.evil;

import tenant.Trap;

/** A tenant's loader under a name like Jetty's. */
public class WebAppClassLoader extends ClassLoader {
    public WebAppClassLoader() {
        super(WebAppClassLoader.class.getClassLoader());
    }

    public Object getContext() {
        return Trap.spring();
    }
}
