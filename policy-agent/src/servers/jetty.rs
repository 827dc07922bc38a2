//! Jetty, alone or embedded: loaders are `org.eclipse.jetty.*.WebAppClassLoader`, of each of its servlet
//! environments.

use policy_jvm::Local;
use policy_rewrite::Leave;

use crate::identity::names::{Server, ServiceName, service};
use crate::jvm::errors::class_file;

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found, Point};

pub(super) static JETTY: Declaration = Declaration {
    server: Server::Jetty,
    recognises: |lineage| {
        let own = lineage.own();
        own.starts_with("org.eclipse.jetty.") && own.ends_with(".WebAppClassLoader")
    },
    own_classes_alone: false,
    find,
    is_stopped: None,
    points: &[
        // Of Jetty 12. True: the request was answered.
        Point {
            name: "Jetty",
            class: "Lorg/eclipse/jetty/server/handler/ContextHandler;",
            method: "handle",
            descriptors: &[
                "(Lorg/eclipse/jetty/server/Request;Lorg/eclipse/jetty/server/Response;Lorg/eclipse/jetty/util/Callback;)Z",
            ],
            loads: &[0, 1, 2, 3],
            leave: Leave::ReturningBoolean(true),
            door: class_file!("agent/JettyDoor"),
        },
    ],
    main_classes: &[
        "org.eclipse.jetty.runner.",
        "org.eclipse.jetty.start.",
        "org.eclipse.jetty.xml.",
    ],
};

/// The context path, and the display name.
fn find<'j>(container: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    if is_of_spring_boot(container, loader) {
        return Found::Service(container.spring_boot_application());
    }
    let Some(context) = container.get(loader, "getContext") else {
        return Found::NotYet;
    };
    let Some(path) = container.text(&context, "getContextPath") else {
        return Found::NotYet;
    };
    let path = match path.is_empty() {
        true => "/".to_owned(),
        false => path,
    };
    let mut names = vec![path.clone()];
    names.push(match path.as_str() {
        "/" => "ROOT".to_owned(),
        path => path.trim_start_matches('/').to_owned(),
    });
    names.extend(
        container
            .text(&context, "getDisplayName")
            .filter(|name| !name.is_empty()),
    );
    Found::Service(ServiceName {
        server: Server::Jetty,
        ..service(names, true)
    })
}

/// Whether it is the loader for the context of a Spring Boot application. In an executable jar, Jetty's classes
/// are the application's, and are not asked; on a class path the context is of Spring Boot's class.
fn is_of_spring_boot<'j>(container: &Container<'_, 'j>, loader: &Local<'j>) -> bool {
    container.is_spring_boots(&loader.class())
        || (container.get(loader, "getContext"))
            .and_then(|context| container.class_name(&context))
            .is_some_and(|name| name.starts_with("org.springframework.boot."))
}
