//! A Maven repository with `dev.heapwarden:heapwarden-agent`: the library itself as an artifact of type
//! `so`, which a build refers to by its path, and a jar that carries it.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use heapwarden_harness::repository;
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::Sha256;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::files::hex;
use super::release::{PLATFORM, Release, VERSION};

/// Writes the repository.
pub(super) fn write(release: &Release, output: &Path) -> Result<()> {
    let folder = output.join(format!("maven/dev/heapwarden/heapwarden-agent/{VERSION}"));
    fs::create_dir_all(&folder)?;
    let pom = fs::read(repository::root().join("deploy/maven/heapwarden-agent.pom"))
        .context("the artifact's POM cannot be read")?;
    for (end, bytes) in [
        (".pom", pom),
        (".jar", jar(release)?),
        (
            &format!("-{PLATFORM}.so"),
            release.contents.library().to_vec(),
        ),
    ] {
        let file = folder.join(format!("heapwarden-agent-{VERSION}{end}"));
        fs::write(&file, &bytes)
            .with_context(|| format!("{} cannot be written", file.display()))?;
        for (kind, sum) in [
            ("md5", hex(&Md5::digest(&bytes))),
            ("sha1", hex(&Sha1::digest(&bytes))),
            ("sha256", hex(&Sha256::digest(&bytes))),
        ] {
            fs::write(format!("{}.{kind}", file.display()), sum)?;
        }
    }
    Ok(())
}

/// The library below `META-INF/native`, with its licences.
fn jar(release: &Release) -> Result<Vec<u8>> {
    // The oldest time that the format knows: builds of other times give the same bytes.
    let options = SimpleFileOptions::default()
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let licence = |name: &str| {
        fs::read(repository::root().join(name)).with_context(|| format!("{name} cannot be read"))
    };
    let manifest = format!(
        "Manifest-Version: 1.0\r\nImplementation-Title: Heapwarden agent\r\n\
         Implementation-Version: {VERSION}\r\n\r\n"
    );
    let mut jar = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [
        // First, as some readers want it.
        ("META-INF/MANIFEST.MF", manifest.into_bytes()),
        ("META-INF/LICENSE-APACHE", licence("LICENSE-APACHE")?),
        ("META-INF/LICENSE-MIT", licence("LICENSE-MIT")?),
        (
            "META-INF/THIRD-PARTY-LICENSES",
            release.contents.licences().to_vec(),
        ),
        (
            &format!("META-INF/native/{PLATFORM}/libheapwarden.so"),
            release.contents.library().to_vec(),
        ),
    ] {
        jar.start_file(
            name,
            options.compression_method(CompressionMethod::Deflated),
        )?;
        jar.write_all(&bytes)?;
    }
    Ok(jar.finish()?.into_inner())
}
