//! GlassFish and Payara, Micro too: web applications have `org.glassfish.web.loader.WebappClassLoader`, which is no
//! Tomcat's. Their classes of Tomcat's names have Tomcat's methods beside their own, which nobody calls: so this
//! declaration comes first.

use policy_jvm::Local;
use policy_rewrite::Leave;

use crate::identity::names::{Server, ServiceName, service};
use crate::jvm::errors::class_file;

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found, Point};

/// How the names of its main classes begin.
pub(super) const MAIN_CLASSES: &[&str] = &["com.sun.enterprise.glassfish.", "fish.payara."];

pub(super) static GLASSFISH: Declaration = Declaration {
    server: Server::GlassFish,
    recognises: |lineage| lineage.is("org.glassfish.web.loader.WebappClassLoader"),
    find,
    is_stopped: Some(|_, loader| is_stopped(loader)),
    // Of GlassFish 7 and Payara 6. 2, END_PIPELINE: the request was answered.
    points: &[Point {
        name: "GlassFish",
        class: "Lorg/apache/catalina/core/StandardContextValve;",
        method: "invoke",
        descriptors: &["(Lorg/apache/catalina/Request;Lorg/apache/catalina/Response;)I"],
        loads: &[0, 1, 2],
        leave: Leave::ReturningInt(2),
        door: class_file!("agent/GlassFishDoor"),
        fork: None,
        needs: None,
    }],
    own_classes_alone: true,
    main_classes: MAIN_CLASSES,
};

/// The name before the loader has its resources.
const UNKNOWN: &str = "unknown";

/// The context path, which both keep in a field.
fn find<'j>(_: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    // Before it has its resources the name is not there, either.
    if is_stopped(loader) {
        return Found::NotYet;
    }
    let path = loader.get_named("contextName", "Ljava/lang/String;");
    let Some(path) = (path.and_then(|path| path.text())).filter(|path| path != UNKNOWN) else {
        return Found::NotYet;
    };
    let bare = path.trim_start_matches('/');
    let names = match bare.is_empty() {
        true => ["/".to_owned(), "ROOT".to_owned()],
        false => [format!("/{bare}"), bare.to_owned()],
    };
    Found::Service(ServiceName {
        server: Server::GlassFish,
        ..service(names.into(), true)
    })
}

/// A stopped loader, which keeps its name, has let go of its resources. The field has another name in each.
fn is_stopped(loader: &Local<'_>) -> bool {
    let fields = ["jndiResources", "resources"];
    !fields
        .iter()
        .any(|field| (loader.get_named(field, "Ljavax/naming/directory/DirContext;")).is_some())
}
