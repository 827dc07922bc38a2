//! Reads files on a class path.

use std::path::Path;

use policy_jvm::Jni;

/// Files of a folder that are looked at, at most.
const MAX_FILES: usize = 1_000;

/// Reads the elements of a class path: jars and directories.
pub(crate) trait Elements {
    /// Whether the element has this entry.
    fn has(&self, element: &str, entry: &str) -> bool;
    /// The text of an entry.
    fn text(&self, element: &str, entry: &str) -> Option<String>;
    /// The jars in a folder, in order; at most a thousand files are looked at.
    fn jars(&self, folder: &Path) -> Vec<String>;
    /// A variable of the process's environment.
    fn variable(&self, name: &str) -> Option<String>;
}

/// The elements as the JVM reads them.
pub(super) struct Files<'a>(pub(super) &'a Jni);

impl Elements for Files<'_> {
    fn has(&self, element: &str, entry: &str) -> bool {
        match is_archive(element) {
            true => self.0.zip_entry(element, entry).is_some(),
            false => Path::new(element).join(entry).is_file(),
        }
    }

    fn text(&self, element: &str, entry: &str) -> Option<String> {
        match is_archive(element) {
            true => self.0.zip_entry(element, entry),
            false => std::fs::read_to_string(Path::new(element).join(entry)).ok(),
        }
    }

    fn jars(&self, folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = files.take(MAX_FILES).map(|file| file.path());
        let mut jars: Vec<String> = paths
            .filter_map(|path| path.to_str().map(str::to_owned))
            .filter(|path| is_archive(path))
            .collect();
        jars.sort();
        jars
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

pub(super) fn is_archive(element: &str) -> bool {
    let ending = Path::new(element).extension().and_then(|e| e.to_str());
    ending.is_some_and(|ending| {
        ["jar", "war", "zip"]
            .iter()
            .any(|e| ending.eq_ignore_ascii_case(e))
    })
}
