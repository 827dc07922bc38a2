//! Equinox: a loader for each revision of a bundle, which is an `EquinoxClassLoader`.

use std::path::Path;

use policy_jvm::Local;

use crate::identity::names::{Server, ServiceName, service};

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found};
use super::osgi::{self, Bundle};

/// How the name of the launcher's jar begins.
const LAUNCHER: &str = "org.eclipse.equinox.launcher";

pub(super) static EQUINOX: Declaration = Declaration {
    server: Server::Equinox,
    recognises: |lineage| lineage.is("org.eclipse.osgi.internal.loader.EquinoxClassLoader"),
    own_classes_alone: true,
    find,
    is_stopped: Some(is_stopped),
    points: &[],
    main_classes: &["org.eclipse.equinox.launcher."],
};

/// The symbolic name; the path of its web application is another name.
fn find<'j>(container: &Container<'_, 'j>, lineage: &Lineage, loader: &Local<'j>) -> Found<'j> {
    // The framework's own bundle; and an Eclipse application, which is hundreds of bundles that call each other.
    if lineage.own().ends_with("$SystemModuleClassLoader") || is_of_launcher(container) {
        return Found::Nobody;
    }
    let Some(generation) = generation(loader) else {
        return Found::NotYet;
    };
    let Some(revision) = revision(&generation) else {
        return Found::NotYet;
    };
    let module = field(&revision, "revisions", "container/ModuleRevisions")
        .and_then(|revisions| field(&revisions, "module", "container/Module"));
    let level = module.and_then(|module| module.int_named("startlevel"));
    if osgi::is_servers(container, level) {
        return Found::Nobody;
    }
    let mut bundle = Bundle::called(container.text_in(&revision, "symbolicName"));
    if let Some(info) = field(&generation, "this$0", "storage/BundleInfo") {
        bundle.location = container.text_in(&info, "location");
        bundle.id = info.long_named("bundleId");
    }
    if let Some(headers) = headers(&generation) {
        bundle.read(container, &headers, |container, key| {
            key.text().or_else(|| container.text_in(key, "key"))
        });
    }
    if bundle.is_library() {
        return Found::Nobody;
    }
    match bundle.names() {
        Some(names) => Found::Service(ServiceName {
            server: Server::Equinox,
            // Loaders tell themselves when they have ended.
            ..service(names, false)
        }),
        None => Found::NotYet,
    }
}

/// Uninstalled, or updated so that this revision's wiring is void. A bundle that is only stopped keeps its loader, and
/// what its classes hold.
fn is_stopped<'j>(_: &Container<'_, 'j>, loader: &Local<'j>) -> bool {
    let is_valid = field(loader, "delegate", "internal/loader/BundleLoader")
        .and_then(|delegate| field(&delegate, "wiring", "container/ModuleWiring"))
        .and_then(|wiring| wiring.boolean_named("isValid"));
    let is_uninstalled = generation(loader)
        .and_then(|generation| revision(&generation))
        .and_then(|revision| field(&revision, "revisions", "container/ModuleRevisions"))
        .and_then(|revisions| revisions.boolean_named("uninstalled"));
    is_valid == Some(false) || is_uninstalled == Some(true)
}

/// Whether the JVM was started with Equinox's launcher.
fn is_of_launcher(container: &Container<'_, '_>) -> bool {
    let path = (container.ground.jvmti).system_property("java.class.path");
    path.is_some_and(|path| {
        path.split(':').any(|element| {
            let file = Path::new(element).file_name();
            file.is_some_and(|file| file.to_string_lossy().starts_with(LAUNCHER))
        })
    })
}

/// The headers of a bundle, in the map that the framework's own maps are made around. None where the framework has the
/// bundle from its cache and nobody has asked for its headers yet.
fn headers<'j>(generation: &Local<'j>) -> Option<Local<'j>> {
    let unmodifiable = generation.get_named("rawHeaders", "Ljava/util/Map;")?;
    let dictionary = unmodifiable.get_named("m", "Ljava/util/Map;")?;
    dictionary.get_named("map", "Ljava/util/Map;")
}

fn generation<'j>(loader: &Local<'j>) -> Option<Local<'j>> {
    field(loader, "generation", "storage/BundleInfo$Generation")
}

fn revision<'j>(generation: &Local<'j>) -> Option<Local<'j>> {
    field(generation, "revision", "container/ModuleRevision")
}

/// A field that is declared with a class of the framework.
fn field<'j>(object: &Local<'j>, name: &str, class: &str) -> Option<Local<'j>> {
    object.get_named(name, &format!("Lorg/eclipse/osgi/{class};"))
}
