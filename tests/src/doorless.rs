//! Servers without a door (`tests/doorless`): their libraries by Maven, the programs around them compiled
//! here.

use crate::fixture::{built_once, up_to_date};
use crate::java::{classes, run_compiler, sources_below};
use crate::{artifacts, jdk, maven};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Java that the programs are compiled for: Helidon's libraries need a newer one.
fn release(server: &str) -> &'static str {
    if server == "helidon" { "21" } else { "17" }
}

/// The class path of one server with its programs `Host` and `Client`.
///
/// # Panics
/// If Maven is missing, the build fails, or a program does not compile.
#[must_use]
pub fn class_path(server: &str) -> String {
    let lib = libraries().join(server).join("lib");
    let mut jars: Vec<String> = fs::read_dir(&lib)
        .unwrap_or_else(|error| panic!("{} by Maven: {error}", lib.display()))
        .map(|entry| entry.expect("readable").path().display().to_string())
        .collect();
    jars.sort();
    let own = format!("tests/doorless/{server}");
    let common = "tests/doorless/common";
    let victims = classes().victims();
    let compiled = built_once(
        &format!("doorless-{server}"),
        &[&own, common, "tests/java"],
        |into| {
            let sources: Vec<PathBuf> = [own.as_str(), common]
                .iter()
                .flat_map(|folder| sources_below(&artifacts::repository().join(folder)))
                .collect();
            run_compiler(
                Command::new(jdk::newest().program("javac"))
                    // Manifests name jars that are not there.
                    .args(["-Xlint:all,-classfile,-processing,-path", "-Werror"])
                    .args(["--release", release(server), "-d"])
                    .arg(into)
                    .arg("-cp")
                    .arg(format!("{}:{}", victims.display(), jars.join(":")))
                    .args(sources),
            );
        },
    );
    format!(
        "{}:{}:{}",
        compiled.display(),
        victims.display(),
        jars.join(":")
    )
}

/// The JVM flag that names a file with the flags which a server needs, if it needs any.
#[must_use]
pub fn flags(server: &str) -> Option<String> {
    let file = artifacts::repository().join(format!("tests/doorless/{server}/flags"));
    file.is_file().then(|| format!("@{}", file.display()))
}

fn libraries() -> &'static Path {
    static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let target = artifacts::repository().join("target/doorless");
        up_to_date("doorless", &["tests/doorless"], &[&target], || {
            let directory = format!("-Dservers.directory={}", target.display());
            maven::package(
                "the servers without a door are not there",
                &artifacts::repository().join("tests/doorless"),
                &[&directory],
            );
        });
        target
    })
}
