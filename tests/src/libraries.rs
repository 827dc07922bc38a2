//! Large libraries whose classes are given counters and verified (`tests/libraries`): Maven fetches them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::fixture::up_to_date;
use crate::jdk::is_long;
use crate::{artifacts, maven};

/// The packages of the libraries, for policies.
pub const PACKAGES: [&str; 8] = [
    "antlr.*",
    "io.micrometer.*",
    "jakarta.*",
    "kotlin.*",
    "org.apache.*",
    "org.h2.*",
    "org.springframework.*",
    "scala.*",
];
/// Libraries of a short run, by how the names of their jars begin.
const SHORT: [&str; 2] = ["antlr", "kotlin-stdlib"];

/// The folder with all of them.
fn all() -> &'static Path {
    static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let target = artifacts::repository().join("target/libraries");
        up_to_date("libraries", &["tests/libraries"], &[&target], || {
            // Those of an earlier list.
            let _ = std::fs::remove_dir_all(&target);
            let directory = format!("-Dlibraries.directory={}", target.display());
            maven::package(
                "the libraries cannot be fetched",
                &artifacts::repository().join("tests/libraries"),
                &[&directory],
            );
        });
        target
    })
}

/// The jar of one, by how its name begins.
///
/// # Panics
/// If they cannot be fetched, or there is none.
#[must_use]
pub fn jar(name: &str) -> PathBuf {
    let mut found = std::fs::read_dir(all()).expect("readable").flatten();
    let jar = found.find(|entry| entry.file_name().to_string_lossy().starts_with(name));
    jar.unwrap_or_else(|| panic!("no library {name}")).path()
}

/// The folder of the libraries to look at: all of them in a long run, else `folder`, into which it copies Kotlin's
/// library and an old one.
///
/// # Panics
/// If they cannot be fetched or copied.
#[must_use]
pub fn wanted(folder: &Path) -> &Path {
    if is_long() {
        return all();
    }
    for entry in std::fs::read_dir(all()).expect("readable") {
        let jar = entry.expect("readable").path();
        let name = jar.file_name().expect("it has one");
        let shown = name.to_string_lossy();
        if SHORT.iter().any(|library| shown.starts_with(library)) {
            std::fs::copy(&jar, folder.join(name)).expect("writable");
        }
    }
    folder
}
