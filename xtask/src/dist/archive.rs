//! `heapwarden-VERSION-linux-x86_64.tar.gz`, and how any archive of ours is written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::contents::{Entry, Place};
use super::files::gzip;
use super::release::{PLATFORM, Release, VERSION};

/// Writes the archive.
pub(super) fn write(release: &Release, output: &Path) -> Result<()> {
    let root = format!("heapwarden-{VERSION}");
    let entries = release.contents.placed(Place::Archive);
    let bytes = tar_gz(&entries, &format!("{root}/"), release.epoch_seconds)?;
    fs::write(output.join(format!("{root}-{PLATFORM}.tar.gz")), bytes)?;
    Ok(())
}

/// A compressed archive of files, which are in order, and of the folders above them.
pub(super) fn tar_gz(entries: &[Entry], root: &str, epoch_seconds: u64) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(gzip());
    archive.mode(tar::HeaderMode::Deterministic);
    let mut folders = BTreeSet::new();
    for entry in entries {
        let path = format!("{root}{}", entry.path);
        for (at, _) in path.match_indices('/') {
            if folders.insert(path[..at].to_owned()) {
                let mut header = header(0, 0o755, epoch_seconds);
                header.set_entry_type(tar::EntryType::Directory);
                archive.append_data(&mut header, format!("{}/", &path[..at]), &[][..])?;
            }
        }
        let mut header = header(entry.bytes.len(), entry.mode, epoch_seconds);
        archive
            .append_data(&mut header, &path, entry.bytes.as_slice())
            .with_context(|| format!("{path} cannot be packed"))?;
    }
    Ok(archive.into_inner()?.finish()?)
}

fn header(bytes: usize, mode: u32, epoch_seconds: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes as u64);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(epoch_seconds);
    // dpkg wants names, and root has this one everywhere.
    let _ = header.set_username("root");
    let _ = header.set_groupname("root");
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn an_archive_has_its_folders_first_and_the_same_bytes_each_time() {
        let entries = ["a/b/one", "a/two"].map(|path| Entry {
            path: path.to_owned(),
            mode: 0o644,
            bytes: path.as_bytes().to_vec(),
        });
        let once = tar_gz(&entries, "", 1_700_000_000).unwrap();
        assert_eq!(once, tar_gz(&entries, "", 1_700_000_000).unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(once.as_slice()));
        let mut names = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 1_700_000_000);
            assert_eq!(entry.header().username().unwrap(), Some("root"));
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            assert!(text.is_empty() || name.ends_with(&text), "{name}: {text}");
            names.push(name);
        }
        assert_eq!(names, ["a/", "a/b/", "a/b/one", "a/two"]);
    }
}
