//! Tomcat, alone or embedded: loaders are `WebappClassLoaderBase` and its subclasses.

use policy_jvm::Local;
use policy_rewrite::Leave;

use crate::identity::names::{Server, ServiceName, service};
use crate::jvm::errors::class_file;

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found, Point};

pub(super) static TOMCAT: Declaration = Declaration {
    server: Server::Tomcat,
    recognises: |lineage| lineage.is("org.apache.catalina.loader.WebappClassLoaderBase"),
    own_classes_alone: false,
    find,
    is_stopped: Some(|_, loader| resources(loader).is_none()),
    // Of Tomcat 8.5 to 11. The host's valve has set the context class loader; the wrapper's comes next,
    // which makes the filters and the servlet run.
    points: &[Point {
        name: "Tomcat",
        class: "Lorg/apache/catalina/core/StandardContextValve;",
        method: "invoke",
        descriptors: &[
            "(Lorg/apache/catalina/connector/Request;Lorg/apache/catalina/connector/Response;)V",
        ],
        loads: &[0, 1, 2],
        leave: Leave::Returning,
        door: class_file!("agent/TomcatDoor"),
        fork: None,
        needs: None,
    }],
    main_classes: &["org.apache.catalina.startup."],
};

/// The context path, with the host where it isn't the default one, and the deployment's base name (`shop`,
/// `shop##002`, `ROOT`).
fn find<'j>(container: &Container<'_, 'j>, lineage: &Lineage, loader: &Local<'j>) -> Found<'j> {
    if lineage.own().starts_with("org.springframework.boot.") {
        return Found::Service(container.spring_boot_application());
    }
    // Null before setResources and after stop(): a name once found is never overwritten.
    let Some(context) =
        resources(loader).and_then(|resources| container.get(&resources, "getContext"))
    else {
        return Found::NotYet;
    };
    let Some(path) = container.text(&context, "getPath") else {
        return Found::NotYet;
    };
    let mut path = match path.is_empty() {
        true => "/".to_owned(),
        false => path,
    };
    if let Some(host) = container.get(&context, "getParent") {
        let name = container.text(&host, "getName");
        let default = container
            .get(&host, "getParent")
            .and_then(|engine| container.text(&engine, "getDefaultHost"));
        if let (Some(name), Some(default)) = (name, default)
            && !name.eq_ignore_ascii_case(&default)
        {
            // Two hosts may deploy the same path: they are two services.
            path = format!("//{name}{path}");
        }
    }
    let mut names = vec![path];
    if let Some(name) = container
        .text(&context, "getBaseName")
        .filter(|name| !name.is_empty())
    {
        if let Some((base, _version)) = name.split_once("##") {
            names.push(base.to_owned());
        }
        names.push(name);
    }
    // Versions of one path run side by side, and differ in their base names.
    Found::Service(ServiceName {
        server: Server::Tomcat,
        ..service(names, true)
    })
}

/// A field since Tomcat 8; there is no getter.
fn resources<'j>(loader: &Local<'j>) -> Option<Local<'j>> {
    loader.get_named("resources", "Lorg/apache/catalina/WebResourceRoot;")
}
