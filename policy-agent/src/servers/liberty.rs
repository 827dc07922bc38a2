//! Open Liberty: applications have an `AppClassLoader`, and their threads a `ThreadContextClassLoader` that stands for
//! it without being its child.

use policy_jvm::Local;
use policy_rewrite::Leave;

use crate::identity::names::{Server, ServiceName, service};
use crate::jvm::errors::class_file;

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found, Point};

/// How the names of its main classes begin.
pub(super) const MAIN_CLASSES: &[&str] = &["com.ibm.ws."];

pub(super) static LIBERTY: Declaration = Declaration {
    server: Server::Liberty,
    recognises: |lineage| {
        [APPLICATION, OF_THREADS, REFERENCE]
            .iter()
            .any(|class| lineage.is(class))
    },
    find,
    is_stopped: None,
    // Of Open Liberty 25, with either name of the Servlet API. Its result means nothing.
    points: &[Point {
        name: "Liberty",
        class: "Lcom/ibm/ws/webcontainer/filter/WebAppFilterManager;",
        method: "invokeFilters",
        descriptors: &[
            "(Ljakarta/servlet/ServletRequest;Ljakarta/servlet/ServletResponse;Lcom/ibm/wsspi/webcontainer/servlet/IServletContext;Lcom/ibm/wsspi/webcontainer/RequestProcessor;Ljava/util/EnumSet;Lcom/ibm/wsspi/http/HttpInboundConnection;)Z",
            "(Ljavax/servlet/ServletRequest;Ljavax/servlet/ServletResponse;Lcom/ibm/wsspi/webcontainer/servlet/IServletContext;Lcom/ibm/wsspi/webcontainer/RequestProcessor;Ljava/util/EnumSet;Lcom/ibm/wsspi/http/HttpInboundConnection;)Z",
        ],
        loads: &[3, 1, 2, 0, 4, 5, 6],
        leave: Leave::ReturningBoolean(false),
        door: class_file!("agent/LibertyDoor"),
        fork: None,
        needs: None,
    }],
    own_classes_alone: true,
    main_classes: MAIN_CLASSES,
};

const APPLICATION: &str = "com.ibm.ws.classloading.internal.AppClassLoader";
/// Stands for an application's loader, and holds it weakly.
const REFERENCE: &str = "com.ibm.ws.classloading.internal.ClassLoaderRef";
const OF_THREADS: &str = "com.ibm.ws.classloading.internal.ThreadContextClassLoader";

fn find<'j>(container: &Container<'_, 'j>, lineage: &Lineage, loader: &Local<'j>) -> Found<'j> {
    if !lineage.is(APPLICATION) {
        return behind(container, lineage, loader).map_or(Found::Nobody, Found::ChildOf);
    }
    let Some(key) = container.get(loader, "getKey") else {
        return Found::Nobody;
    };
    match (
        container.text(&key, "getDomain"),
        container.text(&key, "getId"),
    ) {
        (Some(domain), Some(id)) => named(&domain, &id).map_or(Found::Nobody, Found::Service),
        _ => Found::Nobody,
    }
}

/// The loader that this one stands for. The parents of both kinds do not lead to it.
fn behind<'j>(
    container: &Container<'_, 'j>,
    lineage: &Lineage,
    loader: &Local<'j>,
) -> Option<Local<'j>> {
    if lineage.is(OF_THREADS) {
        return loader.get_named("appLoader", "Ljava/lang/ClassLoader;");
    }
    let held = loader.get_named("classLoaderWeakRef", "Ljava/lang/ref/WeakReference;")?;
    container.get(&held, "get")
}

/// The name of an application's loader: `shop#shop.war` in the domain `WebModule`. The loader does not know the context
/// path: the one that Liberty gives by default is an alias. `None` for libraries that are shared. Pure.
fn named(domain: &str, id: &str) -> Option<ServiceName> {
    if domain.to_ascii_lowercase().contains("library") {
        return None;
    }
    let (application, module) = id.split_once('#').unwrap_or((id, ""));
    let stem = module.strip_suffix(".war").unwrap_or(module);
    let names = match stem.is_empty() || stem == application {
        true => vec![
            application.to_owned(),
            id.to_owned(),
            format!("/{application}"),
        ],
        // One of several modules of an application.
        false => vec![
            id.to_owned(),
            module.to_owned(),
            stem.to_owned(),
            format!("/{stem}"),
        ],
    };
    Some(ServiceName {
        server: Server::Liberty,
        ..service(names, true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_has_its_own_name_and_a_module_of_several_both() {
        let names = |domain: &str, id: &str| named(domain, id).map(|service| service.aliases);
        assert_eq!(
            names("WebModule", "shop#shop.war").unwrap(),
            ["shop", "shop#shop.war", "/shop"]
        );
        assert_eq!(
            names("WebModule", "bank#web.war").unwrap(),
            ["bank#web.war", "web.war", "web", "/web"]
        );
        assert_eq!(names("Shared Library", "drivers"), None);
    }
}
