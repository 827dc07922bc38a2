//! `heapwarden_VERSION_amd64.deb`: no script runs at its installation, its removal or its update.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use heapwarden_harness::repository;
use md5::{Digest as _, Md5};

use super::archive::tar_gz;
use super::contents::{Entry, POLICY, Place};
use super::files::{gzipped, hex};
use super::release::{Release, VERSION};

const MAINTAINER: &str = "Heapwarden developers <maintainers@heapwarden.dev>";

/// Writes the package.
pub(super) fn write(release: &Release, output: &Path) -> Result<()> {
    let mut files = release.contents.placed(Place::Debian);
    let documents = "usr/share/doc/heapwarden";
    files.push(text(&format!("{documents}/copyright"), copyright()?));
    files.push(Entry {
        path: format!("{documents}/changelog.gz"),
        mode: 0o644,
        bytes: gzipped(&fs::read(repository::root().join("CHANGELOG.md"))?)?,
    });
    files.sort_by(|a, b| a.path.cmp(&b.path));

    let installed_bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    let control = format!(
        "Package: heapwarden\nVersion: {VERSION}\nArchitecture: amd64\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {}\nDepends: {}\nSection: java\nPriority: optional\n\
         Homepage: https://github.com/heapwarden/heapwarden\n\
         Description: memory accounts and limits for the services inside one JVM\n \
         A native agent for HotSpot of JDK 17 to 25, loaded with one start-up flag. It\n \
         gives each service of a shared JVM an account of its own, exports the accounts\n \
         to Prometheus, and enforces limits. The command shows accounts and leaks, and\n \
         suggests limits.\n",
        installed_bytes.div_ceil(1024),
        release.needs.debian()?,
    );
    let sums: String = (files.iter())
        .filter(|file| file.path != POLICY)
        .map(|file| format!("{}  {}\n", hex(&Md5::digest(&file.bytes)), file.path))
        .collect();
    let about = [
        text("conffiles", format!("/{POLICY}\n")),
        text("control", control),
        text("md5sums", sums),
    ];
    let epoch = release.epoch_seconds;
    let mut package = b"!<arch>\n".to_vec();
    member(&mut package, "debian-binary", epoch, b"2.0\n");
    member(
        &mut package,
        "control.tar.gz",
        epoch,
        &tar_gz(&about, "", epoch)?,
    );
    member(
        &mut package,
        "data.tar.gz",
        epoch,
        &tar_gz(&files, "", epoch)?,
    );
    let name = format!("heapwarden_{VERSION}_amd64.deb");
    fs::write(output.join(&name), package).with_context(|| format!("{name} cannot be written"))
}

fn text(path: &str, text: String) -> Entry {
    Entry {
        path: path.to_owned(),
        mode: 0o644,
        bytes: text.into_bytes(),
    }
}

/// Adds a file to an `ar` archive.
fn member(package: &mut Vec<u8>, name: &str, epoch_seconds: u64, bytes: &[u8]) {
    let header = format!(
        "{name:<16}{epoch_seconds:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        0,
        0,
        "100644",
        bytes.len()
    );
    package.extend_from_slice(header.as_bytes());
    package.extend_from_slice(bytes);
    if bytes.len() % 2 == 1 {
        package.push(b'\n');
    }
}

/// As Debian's format of copyright files has it.
fn copyright() -> Result<String> {
    let mit = fs::read_to_string(repository::root().join("LICENSE-MIT"))
        .context("LICENSE-MIT cannot be read")?;
    let holders = mit
        .lines()
        .find_map(|line| line.trim().strip_prefix("Copyright"))
        .context("LICENSE-MIT names no holder")?
        .trim()
        .trim_start_matches("(c) ");
    let indented: String = mit
        .lines()
        .skip(1)
        .map(|line| match line.trim() {
            "" => " .\n".to_owned(),
            line => format!(" {line}\n"),
        })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: heapwarden\nSource: https://github.com/heapwarden/heapwarden\n\
         Comment: The licences of the crates that are linked in are in THIRD-PARTY-LICENSES\n \
         beside this file.\n\n\
         Files: *\nCopyright: {holders}\nLicense: Apache-2.0 or MIT\n\n\
         License: Apache-2.0\n The text is in /usr/share/common-licenses/Apache-2.0.\n\n\
         License: MIT\n{indented}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_padded_to_even_lengths() {
        let mut package = Vec::new();
        member(&mut package, "odd", 7, b"abc");
        assert_eq!(package.len(), 60 + 4);
        assert!(package.ends_with(b"`\nabc\n"));
        member(&mut package, "even", 7, b"ab");
        assert_eq!(package.len(), 60 + 4 + 60 + 2);
    }

    #[test]
    fn the_copyright_file_is_of_the_form_that_debian_reads() {
        let text = copyright().unwrap();
        assert!(text.starts_with("Format: https://"), "{text}");
        for line in text.lines().filter(|line| !line.is_empty()) {
            assert!(line.starts_with(' ') || line.contains(": "), "{line:?}");
        }
    }
}
