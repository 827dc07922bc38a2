//! Tests of the structure: the crates' arrows against the picture in `ARCHITECTURE.md`, no circle of files, and how
//! comments begin.
//!
//! A file points to each file of its crate whose items it takes: by `use`, or by a path that begins with `crate`,
//! `super`, `self` or the name of a module beneath it. A name that is passed on (`pub use`) counts as its file's. Tests
//! are left out, and what stands in a macro's arguments is not read.

mod circles;
mod imports;
mod modules;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use circles::circles;

/// Circles that are left: of the file that names it, and how many files are in it. Mending one takes its row out, and
/// none may grow.
const LEFT: &[(&str, usize)] = &[];

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace")
}

/// The root file of each library, program and test helper of the workspace.
fn crate_roots() -> Vec<PathBuf> {
    let mut roots = Vec::new();
    for package in workspace_packages() {
        for target in package["targets"].as_array().expect("targets") {
            let kinds = target["kind"].as_array().expect("kinds");
            let is_ours = |kind: &serde_json::Value| {
                matches!(kind.as_str(), Some("lib" | "bin" | "cdylib" | "rlib"))
            };
            if kinds.iter().any(is_ours) {
                roots.push(target["src_path"].as_str().expect("a path").into());
            }
        }
    }
    roots
}

fn workspace_packages() -> Vec<serde_json::Value> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let mut read: serde_json::Value =
        serde_json::from_slice(&out.stdout).expect("cargo writes JSON");
    match read["packages"].take() {
        serde_json::Value::Array(packages) => packages,
        other => panic!("no packages: {other}"),
    }
}

/// Of each crate `policy-*` the crates `policy-*` that it uses, as `cargo metadata` tells; without those of its tests.
fn used() -> BTreeMap<String, Vec<String>> {
    let is_ours = |name: &str| name.starts_with("policy-");
    let mut all = BTreeMap::new();
    for package in workspace_packages() {
        let name = package["name"].as_str().expect("a name");
        if !is_ours(name) {
            continue;
        }
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let mut used: Vec<String> = (dependencies.iter())
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| is_ours(name))
            .map(str::to_owned)
            .collect();
        used.sort();
        all.insert(name.to_owned(), used);
    }
    all
}

/// The same as `ARCHITECTURE.md` draws it: lines of the form `name ─▶ other, another`.
fn drawn(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for line in page.lines() {
        let Some((name, used)) = line.split_once("─▶") else {
            continue;
        };
        if !name.starts_with("policy-") {
            continue;
        }
        let used = used.split_once('(').map_or(used, |(used, _)| used);
        let mut used: Vec<String> = (used.split(','))
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        used.sort();
        all.insert(name.trim().to_owned(), used);
    }
    all
}

#[test]
fn the_crates_use_each_other_as_the_architecture_draws_it() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is read");
    assert_eq!(drawn(&page), used(), "ARCHITECTURE.md, section The crates");
}

#[test]
fn no_file_is_in_a_circle() {
    let mut found = BTreeMap::new();
    for root_file in crate_roots() {
        let modules = modules::of(&root_file);
        let arrows = imports::arrows(&modules);
        for circle in circles(&arrows) {
            let within = |file: &PathBuf| {
                let targets = arrows[file].iter().filter(|target| circle.contains(target));
                (shown(file), targets.map(|target| shown(target)).collect())
            };
            let drawn: BTreeMap<String, Vec<String>> = circle.iter().map(within).collect();
            found.insert(shown(&circle[0]), drawn);
        }
    }
    let counted: Vec<(&str, usize)> = (found.iter())
        .map(|(first, circle)| (first.as_str(), circle.len()))
        .collect();
    assert_eq!(
        counted, LEFT,
        "circles of files, and their arrows: {found:#?}"
    );
}

fn shown(file: &Path) -> String {
    let file = file.strip_prefix(root()).unwrap_or(file);
    file.display().to_string()
}
