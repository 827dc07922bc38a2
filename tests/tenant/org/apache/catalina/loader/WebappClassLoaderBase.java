package org.apache.catalina.loader;

import org.apache.catalina.WebResourceRoot;
import tenant.Trap;

/** A tenant's loader under the name of Tomcat's, with the field of Tomcat's and a trap in it. */
public class WebappClassLoaderBase extends ClassLoader {
    protected WebResourceRoot resources = Trap::spring;

    public WebappClassLoaderBase() {
        super(WebappClassLoaderBase.class.getClassLoader());
    }

    public WebResourceRoot getResources() {
        Trap.spring();
        return resources;
    }
}
