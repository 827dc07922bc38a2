//! Apache Felix, alone, in Karaf or embedded: a loader for each revision of a bundle, which is
//! `BundleWiringImpl$BundleClassLoader`.

use policy_jvm::Local;

use crate::identity::names::{Server, ServiceName, service};

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found};
use super::osgi::{self, Bundle};

/// The state of a bundle that was uninstalled.
const UNINSTALLED: i32 = 1;

pub(super) static FELIX: Declaration = Declaration {
    server: Server::Felix,
    recognises: |lineage| {
        lineage.is("org.apache.felix.framework.BundleWiringImpl$BundleClassLoader")
    },
    own_classes_alone: true,
    find,
    is_stopped: Some(is_stopped),
    points: &[],
    main_classes: &["org.apache.felix.main.", osgi::KARAF],
};

/// The symbolic name; the path of its web application is another name.
fn find<'j>(container: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    let Some(revision) = revision(loader) else {
        return Found::NotYet;
    };
    let archive =
        bundle_of(&revision).and_then(|bundle| field(&bundle, "m_archive", "cache/BundleArchive"));
    let level = archive.as_ref().and_then(|it| it.int_named("m_startLevel"));
    if osgi::is_servers(container, level) {
        return Found::Nobody;
    }
    let mut bundle = Bundle::called(container.text_in(&revision, "m_symbolicName"));
    if let Some(archive) = archive {
        bundle.location = container.text_in(&archive, "m_originalLocation");
        bundle.id = archive.long_named("m_id");
    }
    if let Some(headers) = revision.get_named("m_headerMap", "Ljava/util/Map;") {
        bundle.read(container, &headers, |_, key| key.text());
    }
    if bundle.is_library() {
        return Found::Nobody;
    }
    match bundle.names() {
        Some(names) => Found::Service(ServiceName {
            server: Server::Felix,
            // Loaders tell themselves when they have ended.
            ..service(names, false)
        }),
        None => Found::NotYet,
    }
}

/// Uninstalled, or updated so that this revision is disposed of. A bundle that is only stopped keeps its loader, and
/// what its classes hold.
fn is_stopped<'j>(_: &Container<'_, 'j>, loader: &Local<'j>) -> bool {
    let is_disposed = wiring(loader).and_then(|wiring| wiring.boolean_named("m_isDisposed"));
    let state = revision(loader)
        .and_then(|revision| bundle_of(&revision))
        .and_then(|bundle| bundle.int_named("m_state"));
    is_disposed == Some(true) || state == Some(UNINSTALLED)
}

fn wiring<'j>(loader: &Local<'j>) -> Option<Local<'j>> {
    field(loader, "m_wiring", "BundleWiringImpl")
}

fn revision<'j>(loader: &Local<'j>) -> Option<Local<'j>> {
    field(&wiring(loader)?, "m_revision", "BundleRevisionImpl")
}

fn bundle_of<'j>(revision: &Local<'j>) -> Option<Local<'j>> {
    field(revision, "m_bundle", "BundleImpl")
}

/// A field that is declared with a class of the framework.
fn field<'j>(object: &Local<'j>, name: &str, class: &str) -> Option<Local<'j>> {
    object.get_named(name, &format!("Lorg/apache/felix/framework/{class};"))
}
