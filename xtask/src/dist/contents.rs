//! The files that are packed, and where each lies in the archive and in a Debian system.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use heapwarden_harness::repository;

use super::binaries::Binaries;
use super::files::{files_below, gzipped};

/// A file in an archive.
pub(super) struct Entry {
    /// Without a slash in front.
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
}

/// Where a file is to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Unpacked by hand: everything below one folder.
    Archive,
    /// Installed by dpkg.
    Debian,
}

/// A file with its two places.
struct Item {
    archive: String,
    debian: Option<String>,
    mode: u32,
    bytes: Vec<u8>,
}

/// All of it.
pub(super) struct Contents {
    items: Vec<Item>,
    sbom: Vec<u8>,
    licences: Vec<u8>,
    library: Vec<u8>,
}

/// The policy that a package installs: it measures, and refuses nothing.
const FIRST_POLICY: &str = "examples/policies/observe-suggest-enforce.toml";

/// Where that policy lies on a server.
pub(super) const POLICY: &str = "etc/heapwarden/heapwarden.toml";

/// Folders that are packed whole: in the repository, in the archive, below `usr/share`.
const FOLDERS: [(&str, &str, &str); 6] = [
    ("examples/policies", "policies", "heapwarden/policies"),
    ("deploy/grafana", "grafana", "heapwarden/grafana"),
    ("deploy/prometheus", "prometheus", "heapwarden/prometheus"),
    ("deploy/kubernetes", "kubernetes", "heapwarden/kubernetes"),
    (
        "deploy/systemd",
        "systemd",
        "doc/heapwarden/examples/systemd",
    ),
    ("docs", "docs", "doc/heapwarden/docs"),
];

impl Contents {
    /// Reads them from the repository.
    pub(super) fn collect(
        binaries: Binaries,
        sbom: Vec<u8>,
        licences: Vec<u8>,
    ) -> Result<Contents> {
        let mut contents = Contents {
            items: Vec::new(),
            sbom: sbom.clone(),
            licences: licences.clone(),
            library: binaries.library.clone(),
        };
        contents.add(
            "lib/libheapwarden.so",
            Some("usr/lib/heapwarden/libheapwarden.so"),
            0o644,
            binaries.library,
        );
        contents.add(
            "bin/heapwarden",
            Some("usr/bin/heapwarden"),
            0o755,
            binaries.command,
        );
        for (name, page) in binaries.pages {
            let page = gzipped(&page)?;
            let path = format!("share/man/man1/{name}.gz");
            contents.add(&path, Some(&format!("usr/{path}")), 0o644, page);
        }
        let [bash, zsh, fish] = binaries.completions;
        for (path, debian, bytes) in [
            ("bash-completion/completions/heapwarden", None, bash),
            (
                "zsh/site-functions/_heapwarden",
                Some("zsh/vendor-completions/_heapwarden"),
                zsh,
            ),
            ("fish/vendor_completions.d/heapwarden.fish", None, fish),
        ] {
            let debian = format!("usr/share/{}", debian.unwrap_or(path));
            contents.add(&format!("share/{path}"), Some(&debian), 0o644, bytes);
        }
        let root = repository::root();
        for (folder, archive, debian) in FOLDERS {
            for file in files_below(&root.join(folder))? {
                let bytes = read(&root.join(folder).join(&file))?;
                let debian = format!("usr/share/{debian}/{}", file.display());
                contents.add(
                    &format!("{archive}/{}", file.display()),
                    Some(&debian),
                    0o644,
                    bytes,
                );
            }
        }
        contents.add(
            "heapwarden.toml",
            Some(POLICY),
            0o644,
            read(&root.join(FIRST_POLICY))?,
        );
        for text in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            contents.add(text, None, 0o644, read(&root.join(text))?);
        }
        contents.add(
            "CHANGELOG.md",
            None,
            0o644,
            read(&root.join("CHANGELOG.md"))?,
        );
        contents.add(
            "THIRD-PARTY-LICENSES",
            Some("usr/share/doc/heapwarden/THIRD-PARTY-LICENSES"),
            0o644,
            licences,
        );
        contents.add(
            "heapwarden.cdx.json",
            Some("usr/share/doc/heapwarden/heapwarden.cdx.json"),
            0o644,
            sbom,
        );
        Ok(contents)
    }

    fn add(&mut self, archive: &str, debian: Option<&str>, mode: u32, bytes: Vec<u8>) {
        self.items.push(Item {
            archive: archive.to_owned(),
            debian: debian.map(str::to_owned),
            mode,
            bytes,
        });
    }

    /// The files of a place, in order.
    pub(super) fn placed(&self, place: Place) -> Vec<Entry> {
        let mut entries: Vec<Entry> = (self.items.iter())
            .filter_map(|item| {
                let path = match place {
                    Place::Archive => item.archive.clone(),
                    Place::Debian => item.debian.clone()?,
                };
                Some(Entry {
                    path,
                    mode: item.mode,
                    bytes: item.bytes.clone(),
                })
            })
            .collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }

    /// The bill of materials.
    pub(super) fn sbom(&self) -> &[u8] {
        &self.sbom
    }

    /// The licences of what is linked in.
    pub(super) fn licences(&self) -> &[u8] {
        &self.licences
    }

    /// The library.
    pub(super) fn library(&self) -> &[u8] {
        &self.library
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
}
