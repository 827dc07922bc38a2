//! Tests of the structure: the arrows of the crates and of the agent's rooms against the pictures in `ARCHITECTURE.md`,
//! no circle of files, and how comments begin.
//!
//! A file points to each file of its crate whose items it takes: by `use`, or by a path that begins with `crate`,
//! `super`, `self` or the name of a module beneath it. A name that is passed on (`pub use`) counts as its file's. Tests
//! are left out, and what stands in a macro's arguments is not read.

mod circles;
mod imports;
mod modules;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use circles::circles;

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace")
}

/// The root file of each library, program and test helper of the workspace.
fn crate_roots() -> Vec<PathBuf> {
    let mut roots = Vec::new();
    for package in metadata()["packages"].as_array().expect("packages") {
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

fn metadata() -> serde_json::Value {
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
    serde_json::from_slice(&out.stdout).expect("cargo writes JSON")
}

/// Of each crate of the product the crates of the product that it uses, as `cargo metadata` tells; without those of its
/// tests.
fn used() -> BTreeMap<String, Vec<String>> {
    let metadata = metadata();
    let members = metadata["workspace_default_members"].as_array();
    let members = members.expect("the product's crates");
    let packages = metadata["packages"].as_array().expect("packages");
    let products = packages.iter().filter(|one| members.contains(&one["id"]));
    let names: Vec<&str> = products
        .clone()
        .filter_map(|one| one["name"].as_str())
        .collect();
    let is_ours = |name: &str| names.contains(&name);
    let mut all = BTreeMap::new();
    for package in products {
        let name = package["name"].as_str().expect("a name");
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

/// The same as `ARCHITECTURE.md` draws it in one of its sections: lines of the form `name ─▶ other, another`.
fn drawn(section: &str) -> BTreeMap<String, Vec<String>> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is read");
    let (_, page) = page.split_once(section).expect("it has the section");
    let page = page.split("\n#").next().unwrap_or_default();
    let mut all = BTreeMap::new();
    for line in page.lines() {
        let Some((name, used)) = line.split_once("─▶") else {
            continue;
        };
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
    assert_eq!(
        drawn("\n## The crates\n"),
        used(),
        "ARCHITECTURE.md, section The crates"
    );
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
    assert!(
        found.is_empty(),
        "circles of files, and their arrows: {found:#?}"
    );
}

fn shown(file: &Path) -> String {
    let file = file.strip_prefix(root()).unwrap_or(file);
    file.display().to_string()
}

/// The rooms of the agent, the folders and files beside its `lib.rs`, with the rooms whose items each takes.
fn rooms() -> BTreeMap<String, Vec<String>> {
    let source = root().join("policy-agent/src");
    let room = |file: &Path| {
        let inside = file.strip_prefix(&source).ok()?.with_extension("");
        let first = inside.components().next()?.as_os_str();
        Some(first.to_string_lossy().into_owned())
    };
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let modules = modules::of(&source.join("lib.rs"));
    for (file, targets) in imports::arrows(&modules) {
        let Some(from) = room(&file).filter(|from| from != "lib") else {
            continue;
        };
        let others = targets.iter().filter_map(|target| room(target));
        let others = others.filter(|to| *to != from && to != "lib");
        rooms.entry(from.clone()).or_default().extend(others);
    }
    let sorted = |(room, others): (String, BTreeSet<String>)| (room, others.into_iter().collect());
    rooms.into_iter().map(sorted).collect()
}

#[test]
fn the_rooms_of_the_agent_use_each_other_as_the_architecture_draws_it() {
    let mut rooms = rooms();
    assert!(rooms.remove("entry").is_some(), "the owner names the rooms");
    let names_owner = |others: &Vec<String>| others.iter().any(|other| other == "entry");
    assert!(!rooms.values().any(names_owner), "the owner: {rooms:#?}");
    rooms.retain(|_, others| !others.is_empty());
    assert_eq!(
        drawn("\n### The agent's rooms\n"),
        rooms,
        "ARCHITECTURE.md, section The agent's rooms"
    );
}
