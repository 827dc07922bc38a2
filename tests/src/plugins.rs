//! Hosts of plugins as programs (`tests/plugins`), with the libraries that make them such: Maven fetches these.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::fixture::built_once;
use crate::java::{classes, run_compiler, sources_below};
use crate::{artifacts, fetched, jdk};

/// Their folder below `tests`.
const LIBRARIES: &str = "plugins";

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
        parts.extend(fetched::jars(LIBRARIES).into_iter().filter(|library| {
            let name = library.file_name().expect("it has one").to_string_lossy();
            !without.iter().any(|start| name.starts_with(start))
        }));
        fetched::joined(&parts)
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
            let mut path = fetched::jars(LIBRARIES);
            path.push(classes().victims());
            for part in ["hosts", "bundle", "connector", "forger"] {
                run_compiler(
                    fetched::compiler(jdk::compiler(), &into.join(part), 17)
                        .arg("-cp")
                        .arg(if part == "forger" {
                            String::new()
                        } else {
                            fetched::joined(&path)
                        })
                        .args(sources_below(&sources.join(part))),
                );
            }
            let modules = sources.join("modules");
            run_compiler(
                fetched::compiler(jdk::compiler(), &into.join("modules"), 17)
                    .arg("--module-source-path")
                    .arg(&modules)
                    .args(sources_below(&modules)),
            );
        });
        PluginHosts { folder }
    })
}
