package org.pf4j;

/** As PF4J has it, as far as the agent reads it. */
public interface PluginDescriptor {
    String getPluginId();
}
