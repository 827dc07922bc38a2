//! `cargo xtask dist`: everything that is given away, under one version and reproducibly: an archive,
//! a Debian package, Maven artifacts, the context of a container image, Kubernetes manifests.
//!
//! Times are `SOURCE_DATE_EPOCH` or those of the commit, entries are sorted, owners are root, and no
//! path of this machine gets into a file: so two runs over one commit give the same bytes.

mod archive;
mod binaries;
mod contents;
mod debian;
mod dependencies;
mod elf;
mod files;
mod image;
mod licences;
mod maven;
mod release;
mod sbom;
mod version;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use heapwarden_harness::repository;
use sha2::{Digest as _, Sha256};

use contents::Contents;
use files::{files_below, hex};
use release::{Release, VERSION};

/// The user's choices.
#[derive(Args)]
pub(crate) struct Options {
    /// Where to write; what an earlier run wrote there is replaced [default: target/dist]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// Pack the library and the command of this folder, as they are, instead of building those that
    /// run with glibc 2.17
    #[arg(long, value_name = "FOLDER")]
    built: Option<PathBuf>,
}

/// Makes the files.
///
/// # Errors
/// What is missing, or does not fit together.
pub(crate) fn run(options: &Options) -> Result<()> {
    version::check()?;
    let output = match &options.output {
        Some(folder) => std::path::absolute(folder)?,
        None => repository::target().join("dist"),
    };
    let epoch_seconds = epoch_seconds()?;
    let binaries = match &options.built {
        Some(folder) => binaries::Binaries::read(folder)?,
        None => binaries::portable()?,
    };
    let needs = binaries.needs()?;
    println!("the library and the command need {needs}");
    let dependencies = dependencies::read()?;
    let sbom = sbom::write(&dependencies, epoch_seconds)?;
    let licences = licences::write(&dependencies)?;
    let contents = Contents::collect(binaries, sbom, licences)?;
    let release = Release {
        contents,
        epoch_seconds,
        needs,
    };

    // Only what is ours: the folder may be anybody's.
    let made = output.join("SHA256SUMS");
    if output.exists() && !made.exists() && fs::read_dir(&output)?.next().is_some() {
        bail!(
            "{} has files that this command did not write; name an empty folder",
            output.display()
        );
    }
    if output.exists() {
        fs::remove_dir_all(&output)
            .with_context(|| format!("{} cannot be removed", output.display()))?;
    }
    fs::create_dir_all(&output).with_context(|| format!("{} cannot be made", output.display()))?;
    archive::write(&release, &output)?;
    debian::write(&release, &output)?;
    maven::write(&release, &output)?;
    image::write(&output)?;
    fs::write(
        output.join(format!("heapwarden-{VERSION}.cdx.json")),
        release.contents.sbom(),
    )?;
    fs::write(&made, sums(&output)?)?;
    println!("written: {}", output.display());
    for file in files_below(&output)? {
        let bytes = fs::metadata(output.join(&file))?.len();
        println!("  {:>9} {}", bytes, file.display());
    }
    Ok(())
}

/// `SOURCE_DATE_EPOCH`, else when the commit was made.
fn epoch_seconds() -> Result<u64> {
    if let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let text = text.to_string_lossy().into_owned();
        return text
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH={text} is no number of seconds"));
    }
    let commit = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(repository::root())
        .output();
    let text = commit
        .ok()
        .filter(|commit| commit.status.success())
        .and_then(|commit| String::from_utf8(commit.stdout).ok());
    text.and_then(|text| text.trim().parse().ok())
        .context("this is no clone with commits; set SOURCE_DATE_EPOCH to the seconds since 1970 of the release")
}

/// As `sha256sum` writes and reads them.
fn sums(output: &Path) -> Result<String> {
    let mut text = String::new();
    for file in files_below(output)? {
        let bytes = fs::read(output.join(&file))?;
        text.push_str(&format!("{}  {}\n", sha256(&bytes), file.display()));
    }
    Ok(text)
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
