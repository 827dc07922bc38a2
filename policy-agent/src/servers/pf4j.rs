//! PF4J: a loader for each plugin, `org.pf4j.PluginClassLoader` or one that extends it.

use policy_jvm::Local;

use crate::identity::names::{Server, ServiceName, service};

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found};

pub(super) static PF4J: Declaration = Declaration {
    server: Server::Pf4j,
    recognises: |lineage| lineage.is("org.pf4j.PluginClassLoader"),
    own_classes_alone: true,
    find,
    // Unloaded: its jar is closed. A plugin that is only stopped may be started again.
    is_stopped: Some(|_, loader| is_closed(loader)),
    points: &[],
    main_classes: &[],
};

/// The plugin's id, which is unique in its manager.
fn find<'j>(container: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    let descriptor = loader.get_named("pluginDescriptor", "Lorg/pf4j/PluginDescriptor;");
    // A host may have a descriptor of its own.
    let id = descriptor.and_then(|descriptor| {
        (container.text_in(&descriptor, "pluginId"))
            .or_else(|| container.text(&descriptor, "getPluginId"))
    });
    match id {
        Some(id) => Found::Service(ServiceName {
            server: Server::Pf4j,
            // Loaders tell themselves when they have ended.
            ..service(vec![id], false)
        }),
        None => Found::NotYet,
    }
}

/// The loader knows it since PF4J 3.12, and the JDK's part of it in every release.
fn is_closed(loader: &Local<'_>) -> bool {
    let of_jdk = || {
        let path = loader.get_named("ucp", "Ljdk/internal/loader/URLClassPath;");
        path.and_then(|path| path.boolean_named("closed"))
    };
    loader.boolean_named("closed").or_else(of_jdk) == Some(true)
}
