//! The crates that the library and the command are linked from, as Cargo resolves them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use heapwarden_harness::repository;
use serde::Deserialize;

/// The packages whose binaries are shipped.
const SHIPPED: [&str; 2] = ["policy-agent", "policy-cli"];

/// A crate with what it needs itself.
#[derive(Debug, Clone)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// SPDX expression.
    pub(super) licence: String,
    pub(super) repository: Option<String>,
    /// Whether it is ours.
    pub(super) own: bool,
    /// The folder with its sources.
    pub(super) folder: PathBuf,
    /// SHA-256 of its package, if it comes from a registry.
    pub(super) sha256: Option<String>,
    /// Ids of what it is linked from.
    pub(super) needs: BTreeSet<String>,
}

impl Crate {
    /// Its name in other bills of materials.
    pub(super) fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// Absent for what is linked.
    kind: Option<String>,
}

/// The crates by id: all that [`SHIPPED`] is linked from, and nothing that only builds or tests it.
pub(super) fn read() -> Result<BTreeMap<String, Crate>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(repository::root())
        .output()
        .context("cargo metadata cannot be started")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("cargo metadata has changed its form")?;
    let sums = sums()?;
    let packages: BTreeMap<&str, &Package> = (metadata.packages.iter())
        .map(|package| (package.id.as_str(), package))
        .collect();
    let nodes: BTreeMap<&str, &Node> = (metadata.resolve.nodes.iter())
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut left: Vec<&str> = (metadata.packages.iter())
        .filter(|package| package.source.is_none() && SHIPPED.contains(&package.name.as_str()))
        .map(|package| package.id.as_str())
        .collect();
    ensure!(left.len() == SHIPPED.len(), "{SHIPPED:?} are not all there");
    let mut found = BTreeMap::new();
    while let Some(id) = left.pop() {
        if found.contains_key(id) {
            continue;
        }
        let package = packages
            .get(id)
            .with_context(|| format!("{id} is unknown"))?;
        let node = nodes
            .get(id)
            .with_context(|| format!("{id} is not resolved"))?;
        let needs: Vec<&str> = (node.deps.iter())
            .filter(|need| need.dep_kinds.iter().any(|kind| kind.kind.is_none()))
            .map(|need| need.pkg.as_str())
            // A macro runs in the compiler.
            .filter(|need| packages.get(need).is_some_and(|need| !need.is_macro()))
            .collect();
        left.extend(&needs);
        let needs = needs.into_iter().map(str::to_owned).collect();
        found.insert(id.to_owned(), package.as_crate(needs, &sums)?);
    }
    Ok(found)
}

impl Package {
    fn is_macro(&self) -> bool {
        (self.targets.iter()).any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    }

    fn as_crate(&self, needs: BTreeSet<String>, sums: &Sums) -> Result<Crate> {
        let key = (self.name.clone(), self.version.clone());
        Ok(Crate {
            name: self.name.clone(),
            version: self.version.clone(),
            licence: (self.license.as_deref())
                .with_context(|| format!("{} names no licence", self.name))?
                // An older way to write it.
                .replace('/', " OR "),
            repository: self.repository.clone(),
            own: self.source.is_none(),
            folder: (self.manifest_path.parent())
                .context("a manifest lies in a folder")?
                .to_owned(),
            sha256: sums.get(&key).cloned(),
            needs,
        })
    }
}

type Sums = BTreeMap<(String, String), String>;

/// Reads the checksum of each crate's package from `Cargo.lock`, by name and version.
fn sums() -> Result<Sums> {
    let lock = std::fs::read_to_string(repository::root().join("Cargo.lock"))
        .context("Cargo.lock cannot be read")?;
    let mut sums = Sums::new();
    for block in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.strip_prefix(" = ")?.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            sums.insert((name, version), sum);
        }
    }
    ensure!(!sums.is_empty(), "Cargo.lock has changed its form");
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_what_tests_and_builds_is_not() {
        let crates = read().unwrap();
        let names: BTreeSet<&str> = crates.values().map(|one| one.name.as_str()).collect();
        for linked in ["policy-core", "jvmti-bindings", "clap", "memchr"] {
            assert!(names.contains(linked), "{linked}");
        }
        for other in ["proptest", "loom", "xtask", "thiserror-impl", "cc"] {
            assert!(!names.contains(other), "{other}");
        }
        for one in crates.values().filter(|one| !one.own) {
            assert!(one.sha256.is_some(), "{} has no checksum", one.name);
        }
    }
}
