//! Libraries that Maven fetches for programs of the tests, and what compiles these programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::fixture::up_to_date;
use crate::jdk::Jdk;
use crate::{artifacts, maven};

/// The jars that `tests/NAME/pom.xml` names, and all that they need.
///
/// # Panics
/// If they cannot be fetched.
#[must_use]
pub fn jars(name: &'static str) -> Vec<PathBuf> {
    static FETCHED: Mutex<Option<HashMap<&'static str, Vec<PathBuf>>>> = Mutex::new(None);
    let mut fetched = (FETCHED.lock()).unwrap_or_else(|poisoned| poisoned.into_inner());
    let known = fetched.get_or_insert_default();
    known.entry(name).or_insert_with(|| fetch(name)).clone()
}

fn fetch(name: &str) -> Vec<PathBuf> {
    let folder = artifacts::repository().join("target").join(name);
    let list = format!("tests/{name}/pom.xml");
    up_to_date(name, &[list.as_str()], &[&folder], || {
        // Those of an earlier list.
        let _ = std::fs::remove_dir_all(&folder);
        let directory = format!("-Dlibraries.directory={}", folder.display());
        maven::package(
            &format!("the libraries of {list} cannot be fetched"),
            &artifacts::repository().join("tests").join(name),
            &[&directory],
        );
    });
    let entries = std::fs::read_dir(folder).expect("readable").flatten();
    let mut jars: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    jars.sort();
    jars
}

/// A compiler's command for programs that run on this version of Java and later. Newer ones than 17 run the
/// processors of the libraries if they are told to.
#[must_use]
pub fn compiler(jdk: &Jdk, into: &Path, release: u32) -> Command {
    let mut command = Command::new(jdk.program("javac"));
    command
        // The libraries' manifests name jars, and their classes annotations, that are not there.
        .args([
            "-Xlint:all,-path,-classfile,-processing,-missing-explicit-ctor",
            "-Werror",
            "--release",
            &release.to_string(),
        ])
        .args((jdk.feature >= 21).then_some("-proc:full"))
        .arg("-d")
        .arg(into);
    command
}

/// A class path.
#[must_use]
pub fn joined(parts: &[PathBuf]) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|part| part.display().to_string())
        .collect();
    parts.join(":")
}
