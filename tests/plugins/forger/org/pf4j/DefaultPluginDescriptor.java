package org.pf4j;

/** As PF4J has it, as far as the agent reads it. */
public final class DefaultPluginDescriptor implements PluginDescriptor {
    private final String pluginId;

    DefaultPluginDescriptor(String pluginId) {
        this.pluginId = pluginId;
    }

    @Override
    public String getPluginId() {
        return pluginId;
    }
}
