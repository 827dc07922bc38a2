//! Which service a class loader belongs to.
//!
//! Runs on the loader thread alone, never on an allocating one. What a server's loaders look like, and how it names
//! the service of one, is declared in [`crate::servers`]; here is the order of the rules.
//!
//! | loader class | named by |
//! | --- | --- |
//! | the application class loader | the program: see [`super::program`]; nobody's where that is a container |
//! | that of a server or plugin host | its declaration |
//! | `jdk.internal.loader.*`, but for the loaders of module layers | nobody |
//! | any other | its JDK name, else the service of its parent (JSP and other child loaders) |

use policy_jvm::{Jni, Local};

use crate::ground::Ground;
use crate::identity::names::{Server, service};
use crate::servers::{Container, Found, Lineage, SERVERS, declaration};

use super::program;

/// Applies the rules to a loader.
pub(crate) fn find<'j>(ground: &Ground, jni: &'j Jni, loader: &Local<'j>) -> Found<'j> {
    let jvmti = &ground.jvmti;
    let container = container(ground, jni);
    let lineage = Lineage::of(jvmti, loader);
    if lineage.own() == "jdk.internal.loader.ClassLoaders$AppClassLoader" {
        return program::program(jni, jvmti).map_or(Found::Nobody, Found::Program);
    }
    if let Some(server) = SERVERS.iter().find(|server| (server.recognises)(&lineage)) {
        let is_its = match server.own_classes_alone {
            true => container.is_own(&loader.class()),
            false => Some(true),
        };
        match is_its {
            Some(true) => return (server.find)(&container, &lineage, loader),
            // An application's own copy of the server: as any other of its loaders.
            Some(false) => {}
            None => return Found::NotYet,
        }
    } else if lineage.own().starts_with("jdk.internal.loader.") {
        return Found::Nobody;
    }
    match container.jdk_name(loader) {
        Some(name) => Found::Service(service(vec![name], false)),
        None => container
            .parent(loader)
            .map_or(Found::Nobody, Found::ChildOf),
    }
}

/// Whether the loaders of this server show that it has stopped a service.
pub(crate) fn tells_stop(server: Server) -> bool {
    declaration(server).is_some_and(|server| server.is_stopped.is_some())
}

/// Whether the server has stopped the service of this loader while the loader still exists.
pub(crate) fn is_stopped<'j>(
    ground: &Ground,
    jni: &'j Jni,
    server: Server,
    loader: &Local<'j>,
) -> bool {
    (declaration(server).and_then(|server| server.is_stopped))
        .is_some_and(|is_stopped| is_stopped(&container(ground, jni), loader))
}

fn container<'a, 'j>(ground: &'a Ground, jni: &'j Jni) -> Container<'a, 'j> {
    Container {
        ground,
        jni,
        spring_boot: program::spring_boot_application,
        main_class: program::main_class,
    }
}
