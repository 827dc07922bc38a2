//! Which service a class loader belongs to: the rules for each server.
//!
//! Runs on the loader thread alone, never on an allocating one. It reads fields of JDK classes and calls
//! plain getters of the containers' own classes (Tomcat, Jetty). A class whose loader is a service, or
//! not known yet, is an application's, whatever its name: its code is never called.
//!
//! | loader class | named by |
//! | --- | --- |
//! | Tomcat's `WebappClassLoaderBase` and subclasses | context path of `resources.getContext()` |
//! | the same, embedded in Spring Boot | the application: see [`super::program`] |
//! | Jetty's `*.WebAppClassLoader` | `getContext().getContextPath()` |
//! | the same, embedded in Spring Boot | the application: see [`super::program`] |
//! | WildFly's `ModuleClassLoader` | its JDK name `deployment.<name>`; other modules are the container's |
//! | Spring Boot's launcher | the application: see [`super::program`] |
//! | the application class loader | the program: see [`super::program`]; nobody's where that is a container |
//! | `jdk.internal.loader.*` | nobody |
//! | any other | its JDK name, else the service of its parent (JSP and other child loaders) |

use policy_jvm::{Jni, JvmTi, Local};

use crate::allocation::recognizer::Recognizer;
use crate::ground::Ground;
use crate::identity::loaders::LoaderOwner;
use crate::identity::names::{Server, ServiceName, java_name, service};
use crate::jvm::handles::JavaHandles;

use super::program;

/// The result of the rules.
pub(crate) enum Found<'j> {
    /// A service.
    Service(ServiceName),
    /// The program itself, which pays for what nobody else does.
    Program(ServiceName),
    /// Belongs to the same service as this loader.
    ChildOf(Local<'j>),
    /// Belongs to no service.
    Nobody,
    /// The container has not named it yet: ask again.
    NotYet,
}

/// Superclasses of a loader's class that are read at the most.
const MAX_SUPER_CLASSES: usize = 32;

/// Applies the rules to a loader.
pub(crate) fn find<'j>(ground: &Ground, jni: &'j Jni, loader: &Local<'j>) -> Found<'j> {
    let jvmti = &ground.jvmti;
    let container = Container { ground, jni };
    let lineage = lineage(jvmti, loader);
    let own_class = lineage.first().map_or("", String::as_str);
    let is = |class: &str| lineage.iter().any(|c| c == class);

    if own_class == "jdk.internal.loader.ClassLoaders$AppClassLoader" {
        return program::program(jni, jvmti).map_or(Found::Nobody, Found::Program);
    }
    if own_class.starts_with("jdk.internal.loader.") {
        return Found::Nobody;
    }
    if is("org.apache.catalina.loader.WebappClassLoaderBase") {
        if own_class.starts_with("org.springframework.boot.") {
            return Found::Service(program::spring_boot_application(jni, jvmti));
        }
        return tomcat(&container, loader);
    }
    if own_class.starts_with("org.eclipse.jetty.") && own_class.ends_with(".WebAppClassLoader") {
        if container.is_of_spring_boot(loader) {
            return Found::Service(program::spring_boot_application(jni, jvmti));
        }
        return jetty(&container, loader);
    }
    if is("org.jboss.modules.ModuleClassLoader") {
        return wildfly(ground.java(), loader);
    }
    if own_class.starts_with("org.springframework.boot.loader.") {
        return Found::Service(program::spring_boot_application(jni, jvmti));
    }
    if let Some(name) = jdk_name(ground.java(), loader) {
        return Found::Service(service(vec![name], false));
    }
    match ground.java().and_then(|java| java.loader_parent(loader)) {
        Some(parent) => Found::ChildOf(parent),
        None => Found::Nobody,
    }
}

/// Whether the container has stopped the service of this loader while the loader still exists. Only
/// Tomcat's loaders show it.
pub(crate) fn is_stopped(loader: &Local<'_>) -> bool {
    tomcat_resources(loader).is_none()
}

/// The names of the loader's class and its super classes, the nearest first.
fn lineage(jvmti: &JvmTi, loader: &Local<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut class = Some(loader.class());
    while let Some(current) = class {
        if let Ok(signature) = jvmti.signature_of(&current) {
            names.push(java_name(&signature));
        }
        if names.len() >= MAX_SUPER_CLASSES {
            break;
        }
        class = current.super_class();
    }
    names
}

/// Calls getters of the container's classes, and of no others.
struct Container<'a, 'j> {
    ground: &'a Ground,
    jni: &'j Jni,
}

impl<'j> Container<'_, 'j> {
    fn get(&self, object: &Local<'j>, getter: &str) -> Option<Local<'j>> {
        let jvmti = &self.ground.jvmti;
        object.getter(jvmti, getter, |class| {
            match jvmti.loader_of(self.jni, class) {
                Ok(Some(loader)) => {
                    let recognizer = Recognizer {
                        ground: self.ground,
                        jni: self.jni,
                    };
                    let owner = self
                        .ground
                        .core
                        .identity
                        .loaders
                        .owner(recognizer.loader(&loader));
                    // A container that is embedded in a program has its classes from the class path.
                    matches!(owner, LoaderOwner::Nobody | LoaderOwner::Program(_))
                }
                Ok(None) => true,
                Err(_) => false,
            }
        })
    }

    fn text(&self, object: &Local<'j>, getter: &str) -> Option<String> {
        self.get(object, getter)?.text()
    }

    /// Whether it is Jetty's loader for the context of a Spring Boot application. In an executable jar, Jetty's
    /// classes are the application's, and are not asked; on a class path the context is of Spring Boot's class.
    fn is_of_spring_boot(&self, loader: &Local<'j>) -> bool {
        let jvmti = &self.ground.jvmti;
        if let Ok(Some(definer)) = jvmti.loader_of(self.jni, &loader.class()) {
            let recognizer = Recognizer {
                ground: self.ground,
                jni: self.jni,
            };
            if self
                .ground
                .core
                .directory()
                .is_spring_boot_application(recognizer.loader(&definer))
            {
                return true;
            }
        }
        let context = self.get(loader, "getContext");
        let signature = context.and_then(|context| jvmti.signature_of(&context.class()).ok());
        signature.is_some_and(|name| java_name(&name).starts_with("org.springframework.boot."))
    }
}

/// Tomcat: the context path, with the host where it isn't the default one, and the
/// deployment's base name (`shop`, `shop##002`, `ROOT`).
fn tomcat<'j>(container: &Container<'_, 'j>, loader: &Local<'j>) -> Found<'j> {
    // Null before setResources and after stop(): a name once found is never overwritten.
    let Some(context) =
        tomcat_resources(loader).and_then(|resources| container.get(&resources, "getContext"))
    else {
        return Found::NotYet;
    };
    let Some(path) = container.text(&context, "getPath") else {
        return Found::NotYet;
    };
    let mut path = if path.is_empty() {
        "/".to_owned()
    } else {
        path
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
        tells_stop: true,
        server: Server::Tomcat,
        ..service(names, true)
    })
}

/// A field since Tomcat 8; there is no getter.
fn tomcat_resources<'j>(loader: &Local<'j>) -> Option<Local<'j>> {
    loader.get_named("resources", "Lorg/apache/catalina/WebResourceRoot;")
}

/// Jetty: the context path, and the display name.
fn jetty<'j>(container: &Container<'_, 'j>, loader: &Local<'j>) -> Found<'j> {
    let Some(context) = container.get(loader, "getContext") else {
        return Found::NotYet;
    };
    let Some(path) = container.text(&context, "getContextPath") else {
        return Found::NotYet;
    };
    let path = if path.is_empty() {
        "/".to_owned()
    } else {
        path
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

/// WildFly, EAP: `deployment.shop.war`, `deployment.bank.ear.shop.war`, possibly with a
/// version behind `@` or `:`.
fn wildfly<'j>(java: Option<&JavaHandles>, loader: &Local<'j>) -> Found<'j> {
    let name = jdk_name(java, loader);
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

/// The `name` field of `java.lang.ClassLoader`; overridden `getName()` methods mislead.
fn jdk_name(java: Option<&JavaHandles>, loader: &Local<'_>) -> Option<String> {
    let name = java?.loader_name(loader)?;
    (!name.is_empty()).then_some(name)
}
