//! Jetty, alone or embedded: loaders are `org.eclipse.jetty.*.WebAppClassLoader`, of each of its servlet
//! environments.

use policy_jvm::Local;
use policy_rewrite::Leave;

use crate::identity::names::{Server, ServiceName, service};
use crate::jvm::errors::class_file;

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found, Point};

/// Loaders around that of a web application, at the most.
const MAX_AROUND: usize = 4;

pub(super) static JETTY: Declaration = Declaration {
    server: Server::Jetty,
    recognises: |lineage| {
        let own = lineage.own();
        own.starts_with("org.eclipse.jetty.") && own.ends_with(".WebAppClassLoader")
    },
    own_classes_alone: false,
    find,
    is_stopped: Some(is_stopped),
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
            fork: None,
            needs: None,
        },
        // Of Jetty 9.4 to 11. The context is not entered yet: no listener of it was told.
        Point {
            name: "Jetty",
            class: "Lorg/eclipse/jetty/server/handler/ContextHandler;",
            method: "doScope",
            descriptors: &[
                "(Ljava/lang/String;Lorg/eclipse/jetty/server/Request;Ljakarta/servlet/http/HttpServletRequest;Ljakarta/servlet/http/HttpServletResponse;)V",
                "(Ljava/lang/String;Lorg/eclipse/jetty/server/Request;Ljavax/servlet/http/HttpServletRequest;Ljavax/servlet/http/HttpServletResponse;)V",
            ],
            loads: &[0, 2, 1, 3, 4],
            leave: Leave::Returning,
            door: class_file!("agent/JettyScopeDoor"),
            fork: None,
            needs: None,
        },
    ],
    main_classes: &[
        "org.eclipse.jetty.runner.",
        "org.eclipse.jetty.start.",
        "org.eclipse.jetty.xml.",
    ],
};

/// The context path, with a virtual host where it is only for such, and the display name.
fn find<'j>(container: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    if is_of_spring_boot(container, loader) {
        return Found::Service(container.spring_boot_application());
    }
    let Some(context) = container.get(loader, "getContext") else {
        return Found::NotYet;
    };
    // It is another's so far, or nobody's: it may be given to the context later.
    if is_stopped(container, loader) {
        return Found::NotYet;
    }
    let Some(path) = container.text(&context, "getContextPath") else {
        return Found::NotYet;
    };
    let path = match path.is_empty() {
        true => "/".to_owned(),
        false => path,
    };
    let mut names = with_hosts(&hosts(container, &context), &path);
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

/// The virtual hosts of a context: an array up to Jetty 11, a list since Jetty 12.
fn hosts<'j>(container: &Container<'_, 'j>, context: &Local<'j>) -> Vec<String> {
    match container.get(context, "getVirtualHosts") {
        Some(list) => container.texts(&list, "toArray"),
        None => container.texts(context, "getVirtualHosts"),
    }
}

/// The path on each of the hosts, or alone if there are none: two hosts may have the same path. With a connector's
/// name a host is `host@connector`, of which Jetty 12 shows `@connector`; for `*.host` it shows `.host`. Pure.
fn with_hosts(hosts: &[String], path: &str) -> Vec<String> {
    let mut names: Vec<String> = (hosts.iter().filter(|host| !host.is_empty()))
        .map(|host| match host.split_once('@') {
            Some((host, _)) if !host.is_empty() => host,
            _ => host.as_str(),
        })
        .map(|host| {
            let any = if host.starts_with('.') { "*" } else { "" };
            format!("//{any}{host}{path}")
        })
        .collect();
    if names.is_empty() {
        names.push(path.to_owned());
        names.push(match path {
            "/" => "ROOT".to_owned(),
            path => path.trim_start_matches('/').to_owned(),
        });
    }
    names
}

/// Whether the context has gone on to another loader, or has stopped with this one. A loader that a program gave to
/// the context stays its own when it stops, and serves again.
fn is_stopped<'j>(container: &Container<'_, 'j>, loader: &Local<'j>) -> bool {
    let Some(context) = container.get(loader, "getContext") else {
        return false;
    };
    let now = container.get(&context, "getClassLoader");
    if now
        .as_ref()
        .is_some_and(|now| is_or_holds(container, now, loader))
    {
        return false;
    }
    match container.text(&context, "getState").as_deref() {
        Some("STOPPED") => true,
        Some("STARTED") => now.is_some_and(|now| {
            (container.class_name(&now)).is_some_and(|name| name.ends_with(".WebAppClassLoader"))
        }),
        _ => false,
    }
}

/// Whether a loader is this one, or one that a program or Jetty has put around it.
fn is_or_holds<'j>(container: &Container<'_, 'j>, outer: &Local<'j>, loader: &Local<'j>) -> bool {
    let mut next = container.parent(outer);
    for _ in 0..MAX_AROUND {
        match next {
            Some(parent) if parent.is_same(loader) => return true,
            Some(parent) => next = container.parent(&parent),
            None => break,
        }
    }
    outer.is_same(loader)
}

/// Whether it is the loader for the context of a Spring Boot application. In an executable jar, Jetty's classes
/// are the application's, and are not asked; on a class path the context is of Spring Boot's class.
fn is_of_spring_boot<'j>(container: &Container<'_, 'j>, loader: &Local<'j>) -> bool {
    container.is_spring_boots(&loader.class())
        || (container.get(loader, "getContext"))
            .and_then(|context| container.class_name(&context))
            .is_some_and(|name| name.starts_with("org.springframework.boot."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_for_virtual_hosts_is_named_with_each_and_one_for_all_by_its_path() {
        let named = |hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            with_hosts(&hosts, "/app")
        };
        assert_eq!(named(&[]), ["/app", "app"]);
        assert_eq!(with_hosts(&[], "/"), ["/", "ROOT"]);
        assert_eq!(
            named(&["blue.example", "*.blue.example@tls"]),
            ["//blue.example/app", "//*.blue.example/app"]
        );
        // As Jetty 12 shows them.
        assert_eq!(
            named(&["@tls", ".blue.example"]),
            ["//@tls/app", "//*.blue.example/app"]
        );
    }
}
