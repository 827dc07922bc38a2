//! Compiles the victims once per test process.

use crate::{agent, jdk};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// Compiled victims.
#[derive(Debug)]
pub struct Classes {
    folder: TempDir,
}

impl Classes {
    /// Class path of the victims themselves (`tests/java`).
    #[must_use]
    pub fn victims(&self) -> PathBuf {
        self.folder.path().join("victims")
    }

    /// A named module (`tests/module`).
    #[must_use]
    pub fn module(&self) -> PathBuf {
        self.folder.path().join("module")
    }

    /// Code that only services' own class loaders see (`tests/tenant`).
    #[must_use]
    pub fn tenant(&self) -> PathBuf {
        self.folder.path().join("tenant")
    }
}

/// The victims, compiled by the oldest JDK found, for Java 17, with every lint an error.
///
/// # Panics
/// With the compiler's messages if one does not compile.
pub fn classes() -> &'static Classes {
    static CLASSES: OnceLock<Classes> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let classes = Classes {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        compile(&agent::repository().join("tests/java"), &classes.victims());
        compile(&agent::repository().join("tests/tenant"), &classes.tenant());
        compile(&agent::repository().join("tests/module"), &classes.module());
        classes
    })
}

fn compile(sources: &Path, into: &Path) {
    let compiler = jdk::every_jdk()[0].tool("javac");
    let output = Command::new(compiler)
        .args(["-Xlint:all", "-Werror", "--release", "17", "-d"])
        .arg(into)
        // What the agent defines in the boot loader.
        .arg("-cp")
        .arg(agent::repository().join("policy-agent/java/classes"))
        .args(sources_below(sources))
        .output()
        .expect("javac of a JDK that was found can be started");
    assert!(
        output.status.success(),
        "victims do not compile:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Every Java source below a folder.
///
/// # Panics
/// If the folder cannot be read.
#[must_use]
pub fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("sources are readable") {
        let path = entry.expect("sources are readable").path();
        if path.is_dir() {
            found.extend(sources_below(&path));
        } else if path.extension().is_some_and(|end| end == "java") {
            found.push(path);
        }
    }
    found
}
