//! Where a path leads, link by link.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Most links that are followed, as Linux does.
const MAX_LINKS: usize = 40;

/// Most components that are looked at, links and all: two whole paths' worth.
const MAX_STEPS: usize = 4096;

/// The directories, links and file that decide about the content of a path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trail {
    /// The directories in which a change can lead elsewhere, without links themselves.
    pub(super) directories: HashSet<PathBuf>,
    /// The links and the file in them, whether or not they exist.
    pub(super) entries: HashSet<PathBuf>,
}

/// Follows the absolute `path`, through links of directories too: a ConfigMap's
/// `policy.toml -> ..data/policy.toml` with `..data -> ..2024_x` changes by the second
/// link alone, and so may a release directory above.
pub(super) fn follow(path: &Path) -> Trail {
    let mut trail = Trail::default();
    let mut here = PathBuf::from("/");
    let mut ahead = names(path);
    let mut links = 0;
    for _ in 0..MAX_STEPS {
        let Some(name) = ahead.pop_front() else {
            break;
        };
        if name == ".." {
            here.pop();
            continue;
        }
        let entry = here.join(&name);
        let metadata = fs::symlink_metadata(&entry);
        let is_link = metadata.as_ref().is_ok_and(|found| found.is_symlink());
        if is_link || metadata.is_err() || ahead.is_empty() {
            trail.directories.insert(here.clone());
            trail.entries.insert(entry.clone());
        }
        if metadata.is_err() {
            break;
        }
        if !is_link {
            here = entry;
            continue;
        }
        links += 1;
        let Ok(target) = fs::read_link(&entry) else {
            break;
        };
        if links > MAX_LINKS {
            break;
        }
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for name in names(&target).into_iter().rev() {
            ahead.push_front(name);
        }
    }
    trail
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory without links in its own path.
    fn directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        (directory, path)
    }

    fn trail(directories: &[&Path], entries: &[&Path]) -> Trail {
        let set = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
        Trail {
            directories: set(directories),
            entries: set(entries),
        }
    }

    #[test]
    fn a_plain_file_needs_its_directory() {
        let (_keep, root) = directory();
        let file = root.join("file");
        assert_eq!(follow(&file), trail(&[&root], &[&file]), "not yet there");
        fs::write(&file, "").unwrap();
        assert_eq!(follow(&file), trail(&[&root], &[&file]));
    }

    #[test]
    fn a_config_map_needs_both_links() {
        let (_keep, root) = directory();
        let release = root.join("..2024_1");
        fs::create_dir(&release).unwrap();
        fs::write(release.join("file"), "").unwrap();
        symlink("..2024_1", root.join("..data")).unwrap();
        symlink("..data/file", root.join("file")).unwrap();
        assert_eq!(
            follow(&root.join("file")),
            trail(
                &[&root, &release],
                &[
                    &root.join("file"),
                    &root.join("..data"),
                    &release.join("file")
                ]
            )
        );
    }

    #[test]
    fn directories_that_are_links_count() {
        let (_keep, root) = directory();
        fs::create_dir_all(root.join("releases/1/etc")).unwrap();
        fs::write(root.join("releases/1/etc/file"), "").unwrap();
        symlink(root.join("releases/1"), root.join("current")).unwrap();
        assert_eq!(
            follow(&root.join("current/etc/../etc/file")),
            trail(
                &[&root, &root.join("releases/1/etc")],
                &[&root.join("current"), &root.join("releases/1/etc/file")]
            )
        );
    }

    #[test]
    fn what_is_missing_is_awaited_where_it_would_appear() {
        let (_keep, root) = directory();
        assert_eq!(
            follow(&root.join("a/b/file")),
            trail(&[&root], &[&root.join("a")])
        );
    }

    #[test]
    fn circles_end() {
        let (_keep, root) = directory();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        assert_eq!(
            follow(&root.join("a")),
            trail(&[&root], &[&root.join("a"), &root.join("b")])
        );
        symlink("c/c/c", root.join("c")).unwrap();
        assert_eq!(follow(&root.join("c")).directories.len(), 1);
    }
}
