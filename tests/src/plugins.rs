//! Hosts of plugins as programs (`tests/plugins`), with the libraries that make them such: Maven fetches these.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::fixture::{built_once, up_to_date};
use crate::java::{classes, run_compiler, sources_below};
use crate::{artifacts, jdk, maven};

/// The compiled hosts and what their plugins are made of.
#[derive(Debug)]
pub struct PluginHosts {
    folder: PathBuf,
}

impl PluginHosts {
    /// The class path of a host that has, of the libraries, those whose names do not begin so.
    #[must_use]
    pub fn class_path_without(&self, without: &[&str]) -> String {
        let mut parts = vec![classes().victims(), self.folder.join("hosts")];
        parts.extend(libraries().into_iter().filter(|library| {
            let name = library.file_name().expect("it has one").to_string_lossy();
            !without.iter().any(|start| name.starts_with(start))
        }));
        joined(&parts)
    }

    /// A part of a plugin or a folder of modules: `bundle`, `connector`, `forger`, `modules`.
    #[must_use]
    pub fn part(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The hosts, compiled for Java 17.
///
/// # Panics
/// If the libraries cannot be fetched, or with the compiler's messages.
pub fn hosts() -> &'static PluginHosts {
    static HOSTS: OnceLock<PluginHosts> = OnceLock::new();
    HOSTS.get_or_init(|| {
        let sources = artifacts::repository().join("tests/plugins");
        let folder = built_once("plugin-hosts", &["tests/plugins", "tests/java"], |into| {
            let mut path = libraries();
            path.push(classes().victims());
            for part in ["hosts", "bundle", "connector", "forger"] {
                run_compiler(
                    compiler(&into.join(part))
                        .arg("-cp")
                        .arg(if part == "forger" {
                            String::new()
                        } else {
                            joined(&path)
                        })
                        .args(sources_below(&sources.join(part))),
                );
            }
            let modules = sources.join("modules");
            run_compiler(
                compiler(&into.join("modules"))
                    .arg("--module-source-path")
                    .arg(&modules)
                    .args(sources_below(&modules)),
            );
        });
        PluginHosts { folder }
    })
}

fn compiler(into: &Path) -> Command {
    let mut command = Command::new(jdk::compiler().program("javac"));
    command
        // The libraries' manifests name jars, and their classes annotations, that are not there.
        .args([
            "-Xlint:all,-path,-classfile,-processing,-missing-explicit-ctor",
            "-Werror",
            "--release",
            "17",
        ])
        .arg("-d")
        .arg(into);
    command
}

fn libraries() -> Vec<PathBuf> {
    static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();
    let folder = LIBRARIES.get_or_init(|| {
        let target = artifacts::repository().join("target/plugins");
        up_to_date("plugins", &["tests/plugins/pom.xml"], &[&target], || {
            // Those of an earlier list.
            let _ = std::fs::remove_dir_all(&target);
            let directory = format!("-Dplugins.directory={}", target.display());
            maven::package(
                "the hosts of plugins cannot be fetched",
                &artifacts::repository().join("tests/plugins"),
                &[&directory],
            );
        });
        target
    });
    let entries = std::fs::read_dir(folder).expect("readable").flatten();
    let mut libraries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    libraries.sort();
    libraries
}

fn joined(parts: &[PathBuf]) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|part| part.display().to_string())
        .collect();
    parts.join(":")
}
