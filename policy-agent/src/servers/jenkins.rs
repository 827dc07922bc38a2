//! Jenkins: a loader for each plugin, whose JDK name is `PluginClassLoader for <short name>` since Jenkins 2.459. Its
//! class is that of Jenkins' own web application.

use policy_jvm::Local;

use crate::identity::names::{Server, ServiceName, service};

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found};

pub(super) static JENKINS: Declaration = Declaration {
    server: Server::Jenkins,
    recognises: |lineage| lineage.is("jenkins.util.URLClassLoader2"),
    // Anybody's loader may have any JDK name.
    own_classes_alone: false,
    find,
    // Plugins stay until Jenkins ends.
    is_stopped: None,
    points: &[],
    main_classes: &[],
};

/// The short name of the plugin. The plugins of older releases are Jenkins itself.
fn find<'j>(container: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    let Some(name) = container.jdk_name(loader) else {
        return (container.parent(loader)).map_or(Found::Nobody, Found::ChildOf);
    };
    let short = name.strip_prefix("PluginClassLoader for ").unwrap_or(&name);
    Found::Service(ServiceName {
        server: Server::Jenkins,
        ..service(vec![short.to_owned(), name.clone()], false)
    })
}
