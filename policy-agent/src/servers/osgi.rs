//! Bundles of OSGi, whichever framework they are in: which of them are services, and what they are called.

use policy_jvm::Local;

use super::container::Container;
use super::{glassfish, liberty};

/// Headers of a bundle's manifest that are read.
const MAX_HEADERS: usize = 500;

/// A bundle with one of these headers does something of itself. Others are libraries: their callers pay.
const ACTIVE: [&str; 6] = [
    "Bundle-Activator",
    "Bundle-Blueprint",
    "Karaf-Commands",
    "Meta-Persistence",
    "Service-Component",
    "Web-ContextPath",
];

/// Karaf's own bundles have start levels below this one, which those that are deployed have, unless its
/// configuration says another.
const FIRST_START_LEVEL_OF_KARAF: i32 = 80;

/// Main classes of Karaf.
pub(super) const KARAF: &str = "org.apache.karaf.main.";

/// Servers that are made of bundles: none of them is a service, and their applications are none.
const MADE_OF_BUNDLES: [&[&str]; 2] = [glassfish::MAIN_CLASSES, liberty::MAIN_CLASSES];

/// Whether a bundle with this start level is the server's own.
pub(super) fn is_servers(container: &Container<'_, '_>, start_level: Option<i32>) -> bool {
    let main_class = container.main_class();
    let starts = |with: &&str| main_class.starts_with(with);
    MADE_OF_BUNDLES.concat().iter().any(starts)
        || main_class.starts_with(KARAF)
            && start_level.is_some_and(|level| level < FIRST_START_LEVEL_OF_KARAF)
}

/// A bundle.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    symbolic_name: Option<String>,
    /// Where it was installed from.
    pub(super) location: Option<String>,
    pub(super) id: Option<i64>,
    /// Whether its headers could be read.
    is_read: bool,
    is_active: bool,
    context_path: Option<String>,
}

impl Bundle {
    /// One with this symbolic name, which bundles of before OSGi 4 lack.
    pub(super) fn called(symbolic_name: Option<String>) -> Bundle {
        Bundle {
            symbolic_name,
            ..Bundle::default()
        }
    }

    /// Reads the headers of its manifest: a map whose keys are made text by `key`.
    pub(super) fn read<'j>(
        &mut self,
        container: &Container<'_, 'j>,
        headers: &Local<'j>,
        key: fn(&Container<'_, 'j>, &Local<'j>) -> Option<String>,
    ) {
        container.each_entry(headers, MAX_HEADERS, |name, value| {
            if let (Some(name), Some(value)) = (key(container, name), value.text()) {
                self.note(&name, &value);
            }
        });
    }

    fn note(&mut self, name: &str, value: &str) {
        self.is_read = true;
        let is = |header: &str| name.eq_ignore_ascii_case(header);
        self.is_active |= ACTIVE.into_iter().any(is)
            || (is("Provide-Capability") && namespaces(value).any(|it| it == "osgi.service"));
        if is("Web-ContextPath") {
            self.context_path = Some(format!("/{}", value.trim().trim_start_matches('/')));
        }
    }

    /// Whether others call its code, and it does nothing of itself.
    pub(super) fn is_library(&self) -> bool {
        self.is_read && !self.is_active
    }

    /// Its names; `None` if it has none. The id tells versions of one name apart, and stays if the bundle is updated.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        let symbolic_name = self.symbolic_name.clone().filter(|name| !name.is_empty());
        let name = symbolic_name.or_else(|| {
            let file = self
                .location
                .as_deref()?
                .trim_end_matches('/')
                .rsplit('/')
                .next()?;
            let stem = file.strip_suffix(".jar").unwrap_or(file);
            (!stem.is_empty()).then(|| stem.to_owned())
        })?;
        let mut names = vec![name.clone()];
        names.extend(self.id.map(|id| format!("{name}@{id}")));
        names.extend(self.context_path.clone());
        Some(names)
    }
}

/// The namespaces of a `Provide-Capability` header: a clause begins with its own, and attributes may be quoted.
fn namespaces(header: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let clauses = header.split(move |c| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    });
    clauses.map(|clause| clause.split(';').next().unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_headers(headers: &[(&str, &str)]) -> Bundle {
        let mut bundle = Bundle::default();
        for (name, value) in headers {
            bundle.note(name, value);
        }
        bundle
    }

    #[test]
    fn a_bundle_that_only_others_call_is_a_library() {
        let plain = ("Bundle-Version", "1.0.0");
        assert!(with_headers(&[plain]).is_library());
        assert!(!Bundle::default().is_library(), "nothing is known of it");
        for active in [
            ("bundle-activator", "a.B"),
            ("Service-Component", "OSGI-INF/a.xml"),
            ("Provide-Capability", "osgi.service;effective:=active"),
            ("Web-ContextPath", "shop"),
        ] {
            assert!(!with_headers(&[plain, active]).is_library(), "{active:?}");
        }
        let extends = ("Provide-Capability", "osgi.extender;osgi.extender=x");
        assert!(with_headers(&[extends]).is_library());
        let provides = "osgi.serviceloader;register=\"a,osgi.service;b\",osgi.implementation";
        assert!(with_headers(&[("Provide-Capability", provides)]).is_library());
    }

    #[test]
    fn a_bundle_is_called_by_its_symbolic_name_or_its_file() {
        let mut bundle = with_headers(&[("Web-ContextPath", "/shop")]);
        bundle.location = Some("file:/opt/deploy/old-shop.jar".to_owned());
        bundle.id = Some(7);
        assert_eq!(bundle.names().unwrap(), ["old-shop", "old-shop@7", "/shop"]);
        bundle.symbolic_name = Some("com.acme.shop".to_owned());
        let names = ["com.acme.shop", "com.acme.shop@7", "/shop"];
        assert_eq!(bundle.names().unwrap(), names);
        assert_eq!(Bundle::default().names(), None);
    }
}
