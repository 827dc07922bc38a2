//! What service a class loader is: the rules per server.
//!
//! Runs on the resolver's thread alone, never on an allocating one. Reads the fields of JDK
//! classes and calls plain getters of the containers' own classes (Tomcat, Jetty). A class
//! whose loader is a service, or not known yet, is an application's, whatever its name: its
//! code is not called.
//!
//! | loader class | named by |
//! | --- | --- |
//! | Tomcat's `WebappClassLoaderBase` and subclasses | context path of `resources.getContext()` |
//! | the same, embedded in Spring Boot | the application: see [`super::boot`] |
//! | Jetty's `*.WebAppClassLoader` | `getContext().getContextPath()` |
//! | WildFly's `ModuleClassLoader` | its JDK name `deployment.<name>`; other modules are the container's |
//! | Spring Boot's launcher | the application: see [`super::boot`] |
//! | `jdk.internal.loader.*` | nobody |
//! | any other | its JDK name, else the service of its parent (JSP and other child loaders) |

use crate::agent::Agent;
use crate::jvm::java::{Jni, Local};
use crate::jvm::sight::Sight;
use crate::jvm::tools::JvmTi;

use super::boot;
use super::loaders::Verdict;

/// How a service is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServiceName {
    /// What the account is named after, where the policy gives no name.
    pub(crate) name: String,
    /// Every name that a policy may match it by, the first included.
    pub(crate) aliases: Vec<String>,
    /// One deployment has one loader at a time here, so that a newer loader of the same name
    /// retires the older. Not so for loaders known by their JDK name alone.
    pub(crate) one_loader: bool,
    /// The loader tells when its service was stopped ([`is_stopped`]).
    pub(crate) tells_stop: bool,
}

/// What the rules found.
pub(crate) enum Found<'j> {
    /// A service.
    Service(ServiceName),
    /// Belongs to whatever this loader belongs to.
    ChildOf(Local<'j>),
    /// No service's.
    Nobody,
    /// The container has not named it yet: ask again.
    NotYet,
}

/// Longest service name kept, in bytes; more is cut. Names come from tenants.
const MOST_NAME_BYTES: usize = 200;
/// Parents followed at the most.
const MOST_SUPER_CLASSES: usize = 32;

/// Applies the rules to a loader.
pub(crate) fn find<'j>(agent: &Agent, jni: &'j Jni, loader: &Local<'j>) -> Found<'j> {
    let tools = &agent.tools;
    let container = Container { agent, jni };
    let lineage = lineage(tools, loader);
    let own_class = lineage.first().map_or("", String::as_str);
    let is = |class: &str| lineage.iter().any(|c| c == class);

    if own_class.starts_with("jdk.internal.loader.") {
        return Found::Nobody;
    }
    if is("org.apache.catalina.loader.WebappClassLoaderBase") {
        if own_class.starts_with("org.springframework.boot.") {
            return Found::Service(boot::application(jni, tools));
        }
        return tomcat(&container, loader);
    }
    if own_class.starts_with("org.eclipse.jetty.") && own_class.ends_with(".WebAppClassLoader") {
        return jetty(&container, loader);
    }
    if is("org.jboss.modules.ModuleClassLoader") {
        return wildfly(agent, loader);
    }
    if own_class.starts_with("org.springframework.boot.loader.") {
        return Found::Service(boot::application(jni, tools));
    }
    if let Some(name) = jdk_name(agent, loader) {
        return Found::Service(service(vec![name], false));
    }
    match parent(agent, loader) {
        Some(parent) => Found::ChildOf(parent),
        None => Found::Nobody,
    }
}

/// Whether a container has stopped the service of this loader, though the loader lives on.
/// Only Tomcat's loaders tell.
pub(crate) fn is_stopped(loader: &Local<'_>) -> bool {
    tomcat_resources(loader).is_none()
}

/// The names of the loader's class and its super classes, the nearest first.
fn lineage(tools: &JvmTi, loader: &Local<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut class = Some(loader.class());
    while let Some(current) = class {
        if let Ok(signature) = tools.signature_of(&current) {
            names.push(java_name(&signature));
        }
        if names.len() >= MOST_SUPER_CLASSES {
            break;
        }
        class = current.super_class();
    }
    names
}

/// Calls getters of the container's classes, and of no others.
struct Container<'a, 'j> {
    agent: &'a Agent,
    jni: &'j Jni,
}

impl<'j> Container<'_, 'j> {
    fn get(&self, object: &Local<'j>, getter: &str) -> Option<Local<'j>> {
        let tools = &self.agent.tools;
        object.getter(tools, getter, |class| {
            match tools.loader_of(self.jni, class) {
                Ok(Some(loader)) => {
                    let sight = Sight {
                        agent: self.agent,
                        jni: self.jni,
                    };
                    let verdict = self.agent.identity.loaders.verdict(sight.loader(&loader));
                    verdict == Verdict::Nobody
                }
                Ok(None) => true,
                Err(_) => false,
            }
        })
    }

    fn text(&self, object: &Local<'j>, getter: &str) -> Option<String> {
        self.get(object, getter)?.text()
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
    Found::Service(service(names, true))
}

/// WildFly, EAP: `deployment.shop.war`, `deployment.bank.ear.shop.war`, possibly with a
/// version behind `@` or `:`.
fn wildfly<'j>(agent: &Agent, loader: &Local<'j>) -> Found<'j> {
    let name = jdk_name(agent, loader);
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
    Found::Service(service(names, true))
}

/// The `name` field of `java.lang.ClassLoader`; overridden `getName()` methods mislead.
fn jdk_name(agent: &Agent, loader: &Local<'_>) -> Option<String> {
    let name = loader.get(agent.java()?.loader_name?)?.text()?;
    (!name.is_empty()).then_some(name)
}

fn parent<'j>(agent: &Agent, loader: &Local<'j>) -> Option<Local<'j>> {
    loader.get(agent.java()?.loader_parent?)
}

pub(crate) fn service(names: Vec<String>, one_loader: bool) -> ServiceName {
    let mut aliases: Vec<String> = Vec::new();
    for name in names {
        let name = clean(&name);
        if !aliases.contains(&name) {
            aliases.push(name);
        }
    }
    ServiceName {
        name: aliases.first().cloned().unwrap_or_default(),
        aliases,
        one_loader,
        tells_stop: false,
    }
}

/// A tenant's name as it may appear in logs and labels: no control characters, not the
/// reserved prefix, bounded.
fn clean(name: &str) -> String {
    let reserved = name.is_empty() || name.starts_with('_');
    bounded(if reserved { "?" } else { "" }.to_owned(), name)
}

/// What a program calls a thread, a class or a method, as it may appear in a log: one line, bounded.
pub(crate) fn printable(name: &str) -> String {
    bounded(String::new(), name)
}

fn bounded(mut out: String, name: &str) -> String {
    for c in name.chars() {
        if out.len() + c.len_utf8() > MOST_NAME_BYTES {
            break;
        }
        out.push(if c.is_control() { '?' } else { c });
    }
    out
}

/// The source form of a class signature: `Ljava/lang/String;` is `java.lang.String`, `[[B`
/// is `byte[][]`.
pub(crate) fn java_name(signature: &str) -> String {
    let dimensions = signature.bytes().take_while(|&b| b == b'[').count();
    let element = &signature[dimensions..];
    let mut name = match element.as_bytes() {
        [b'L', .., b';'] => element[1..element.len() - 1].replace('/', "."),
        b"Z" => "boolean".to_owned(),
        b"B" => "byte".to_owned(),
        b"C" => "char".to_owned(),
        b"S" => "short".to_owned(),
        b"I" => "int".to_owned(),
        b"J" => "long".to_owned(),
        b"F" => "float".to_owned(),
        b"D" => "double".to_owned(),
        _ => element.to_owned(),
    };
    for _ in 0..dimensions {
        name.push_str("[]");
    }
    name
}

/// The package of a class signature, with slashes (`java/lang`); empty for the unnamed
/// package, `None` for primitives. Arrays count as their element.
pub(crate) fn package(signature: &str) -> Option<&str> {
    let class = signature
        .trim_start_matches('[')
        .strip_prefix('L')?
        .strip_suffix(';')?;
    // A hidden class has a '.' or '/' suffix after its name: `La/B$$Lambda.0x00`, and in
    // JDK 17 `La/B$$Lambda$1/0x00`, whose last slash belongs to the suffix.
    let class = match class.rsplit_once("/0x") {
        Some((host, _)) => host,
        None => class,
    };
    Some(class.rsplit_once('/').map_or("", |(package, _)| package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_read_as_source() {
        assert_eq!(java_name("Ljava/lang/String;"), "java.lang.String");
        assert_eq!(java_name("[[B"), "byte[][]");
        assert_eq!(java_name("[Lcom/acme/A$B;"), "com.acme.A$B[]");
        assert_eq!(java_name("J"), "long");
    }

    #[test]
    fn packages_of_classes_arrays_and_hidden_classes() {
        assert_eq!(package("Lcom/acme/A;"), Some("com/acme"));
        assert_eq!(package("[[Lcom/acme/A;"), Some("com/acme"));
        assert_eq!(package("LA;"), Some(""));
        assert_eq!(package("[I"), None);
        assert_eq!(
            package("Lcom/acme/A$$Lambda$14/0x0000000800c03000;"),
            Some("com/acme")
        );
        assert_eq!(package("Lcom/acme/A$$Lambda.0x00007f;"), Some("com/acme"));
    }

    #[test]
    fn a_thread_cannot_forge_a_line_of_the_log() {
        let name = "x\n[heapwarden 1.000s]  WARN account /neighbour is over its limit\r\u{85}";
        let shown = printable(name);
        assert!(shown.starts_with("x?[heapwarden"), "{shown}");
        assert!(!shown.chars().any(char::is_control), "{shown}");
        assert!(printable(&"x".repeat(5000)).len() <= MOST_NAME_BYTES);
    }

    #[test]
    fn hostile_names_are_cleaned_and_bounded() {
        let long = "x".repeat(5000);
        let name = service(
            vec![format!("evil\n\"{long}"), "_unaccounted".into()],
            false,
        );
        assert!(name.aliases.iter().all(|a| a.len() <= MOST_NAME_BYTES));
        assert!(name.name.starts_with("evil?\""));
        assert_eq!(name.aliases[1], "?_unaccounted");
    }
}
