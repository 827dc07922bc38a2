package org.apache.catalina.loader;

/** As Tomcat's loader is before it is given its resources, and after it was stopped. */
public class Pending extends WebappClassLoaderBase {
    public Pending() {
        resources = null;
    }
}
