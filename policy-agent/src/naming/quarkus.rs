//! Quarkus, as it is packaged for a JVM: a folder with `quarkus-run.jar`, and the application's own jar in `app`.
//!
//! The name is, in this order: the system property `quarkus.application.name`; its variable of the environment; the same
//! key of the application's configuration; the application's jar without its version, which is the name that Quarkus
//! itself falls back to.

use std::path::Path;

use crate::identity::versions::without_version;

use super::class_path::Elements;
use super::spring_boot::configured_in;

/// Main classes of Quarkus, which find the application in the folder.
const MAIN_CLASSES: [&str; 2] = [
    "io.quarkus.bootstrap.runner.AotQuarkusEntryPoint",
    "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
];

/// The jar that is started, or that the class path names.
const RUNNER: &str = "quarkus-run.jar";

/// The key of the application's name.
pub(super) const NAME: &str = "quarkus.application.name";

/// Whether a JVM with this main class runs a Quarkus application.
pub(super) fn is_main(main_class: &str) -> bool {
    MAIN_CLASSES.contains(&main_class)
}

/// The names of the application: none if the class path does not lead to its folder. `property` is the system property.
pub(super) fn names(
    class_path: &str,
    property: Option<&str>,
    elements: &dyn Elements,
) -> Vec<String> {
    let runner = (class_path.split(':').map(Path::new))
        .find(|element| element.file_name().is_some_and(|file| file == RUNNER));
    let jars = runner
        .and_then(Path::parent)
        .map(|folder| elements.jars(&folder.join("app")))
        .unwrap_or_default();
    let configured = (property.map(str::to_owned))
        .or_else(|| elements.variable("QUARKUS_APPLICATION_NAME"))
        .or_else(|| (jars.iter()).find_map(|jar| configured_in(jar, NAME, elements)))
        .filter(|name| !name.trim().is_empty());
    let mut names: Vec<String> = configured.into_iter().collect();
    // Others beside it are parts of the application that were built with it: no one of them is its name.
    if let [jar] = jars.as_slice()
        && let Some(stem) = Path::new(jar).file_stem().and_then(|stem| stem.to_str())
    {
        names.push(without_version(stem).to_owned());
        names.push(stem.to_owned());
    }
    names
}
