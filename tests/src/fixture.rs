//! Builds the files that tests need before they run (classes, jars, servers): once for all test processes, and again
//! when a source has changed.

use crate::artifacts;
use heapwarden_harness::repository;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// Every file below a folder, by its path in it.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn files_below(folder: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it").to_owned();
                found.insert(name, path);
            }
        }
    }
    found
}

/// Runs `build` on an empty folder, unless it has run for the same inputs; returns the folder.
///
/// `inputs` are files and folders of the repository, by their paths there. Folders named `target` are not
/// looked into. A lock keeps other processes from building the same at the same time.
///
/// # Panics
/// If a folder cannot be read or written, or `build` panics.
pub fn built_once(name: &str, inputs: &[&str], build: impl FnOnce(&Path)) -> PathBuf {
    let all = repository::target().join("test-fixtures");
    fs::create_dir_all(&all).expect("the target folder is writable");
    let _lock = locked(&all.join(format!("{name}.lock")));
    let folder = all.join(format!("{name}-{:016x}", hash(inputs)));
    if !folder.exists() {
        let partial = all.join(format!("{name}.partial"));
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).expect("the target folder is writable");
        build(&partial);
        fs::rename(&partial, &folder).expect("the target folder is writable");
    }
    folder
}

/// Runs `build`, which writes to a place of its own, unless it has run for the same inputs and `made`
/// exists. See [`built_once`].
///
/// # Panics
/// As [`built_once`].
pub fn up_to_date(name: &str, inputs: &[&str], made: &[&Path], build: impl FnOnce()) {
    let all = repository::target().join("test-fixtures");
    fs::create_dir_all(&all).expect("the target folder is writable");
    let _lock = locked(&all.join(format!("{name}.lock")));
    let stamp = all.join(format!("{name}.stamp"));
    let wanted = format!("{:016x}", hash(inputs));
    let is_built = fs::read_to_string(&stamp).is_ok_and(|found| found == wanted);
    if !(is_built && made.iter().all(|path| path.exists())) {
        let _ = fs::remove_file(&stamp);
        build();
        fs::write(&stamp, wanted).expect("the target folder is writable");
    }
}

/// Locked until it is dropped.
fn locked(path: &Path) -> File {
    let file = File::create(path).expect("the target folder is writable");
    flock(&file, FlockOperation::LockExclusive).expect("a file can be locked");
    file
}

fn hash(inputs: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        add(&artifacts::repository().join(input), &mut hasher);
    }
    hasher.finish()
}

fn add(path: &Path, hasher: &mut DefaultHasher) {
    path.hash(hasher);
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)
            .expect("sources are readable")
            .map(|entry| entry.expect("sources are readable").path())
            .filter(|path| !path.ends_with("target"))
            .collect();
        entries.sort();
        for entry in entries {
            add(&entry, hasher);
        }
    } else {
        fs::read(path).expect("sources are readable").hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_is_built_once_for_the_same_inputs() {
        let name = format!("of-a-test-{}", std::process::id());
        let build = |inputs: &[&str]| {
            let mut ran = false;
            let folder = built_once(&name, inputs, |folder| {
                fs::write(folder.join("made"), "").unwrap();
                ran = true;
            });
            assert!(folder.join("made").exists());
            (folder, ran)
        };
        let (first, ran) = build(&["tests/native"]);
        assert!(ran);
        assert_eq!(build(&["tests/native"]), (first.clone(), false));
        let (second, ran) = build(&["tests/module"]);
        assert!(ran);
        assert_ne!(first, second);
        for folder in [&first, &second] {
            fs::remove_dir_all(folder).unwrap();
        }
        fs::remove_file(first.with_file_name(format!("{name}.lock"))).unwrap();
    }
}
