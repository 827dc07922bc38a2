//! WildFly and EAP: loaders are `ModuleClassLoader`s of JBoss Modules, and those of deployments have the JDK name
//! `deployment.<name>`; other modules are the container's.

use policy_jvm::Local;
use policy_rewrite::Leave;

use crate::identity::names::{Server, ServiceName, service};
use crate::jvm::errors::class_file;

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found, Point};

pub(super) static WILDFLY: Declaration = Declaration {
    server: Server::Undertow,
    recognises: |lineage| lineage.is("org.jboss.modules.ModuleClassLoader"),
    own_classes_alone: false,
    find,
    is_stopped: None,
    // Of Undertow 2.2 with either name of the Servlet API, and of 2.3. A private method, but every request
    // comes through it, on a thread that may block.
    points: &[Point {
        name: "Undertow",
        class: "Lio/undertow/servlet/handlers/ServletInitialHandler;",
        method: "dispatchRequest",
        descriptors: &[
            "(Lio/undertow/server/HttpServerExchange;Lio/undertow/servlet/handlers/ServletRequestContext;Lio/undertow/servlet/handlers/ServletChain;Ljakarta/servlet/DispatcherType;)V",
            "(Lio/undertow/server/HttpServerExchange;Lio/undertow/servlet/handlers/ServletRequestContext;Lio/undertow/servlet/handlers/ServletChain;Ljavax/servlet/DispatcherType;)V",
        ],
        loads: &[2, 4, 0, 1, 3],
        leave: Leave::Returning,
        door: class_file!("agent/UndertowDoor"),
        // Of Quarkus, whose requests come by Vert.x first.
        fork: Some("Lio/undertow/httpcore/BufferAllocator;"),
        needs: None,
    }],
    main_classes: &["org.jboss.modules."],
};

/// `deployment.shop.war`, `deployment.bank.ear.shop.war`, possibly with a version behind `@` or `:`.
fn find<'j>(container: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    let name = container.jdk_name(loader);
    let Some(deployment) = name
        .as_deref()
        .and_then(|name| name.strip_prefix("deployment."))
    else {
        return Found::Nobody;
    };
    let deployment = deployment.split(['@', ':']).next().unwrap_or(deployment);
    let mut names = vec![deployment.to_owned()];
    for archive in [".war", ".ear", ".jar"] {
        if let Some(base) = deployment.strip_suffix(archive) {
            names.push(base.to_owned());
            names.push(format!("/{}", base.rsplit(".ear.").next().unwrap_or(base)));
        }
    }
    Found::Service(ServiceName {
        server: Server::Undertow,
        ..service(names, true)
    })
}
