package org.apache.catalina;

/** A tenant's class under the name of Tomcat's: not Tomcat's. */
public interface WebResourceRoot {
    Object getContext();
}
