//! `cargo xtask fuzz`: each fuzz target for a while. The committed corpora are replayed by `cargo
//! test`, without any of what this needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use heapwarden_harness::repository;

use crate::process;

/// The time that building and leaving a target may take beside its own seconds.
const MARGIN: Duration = Duration::from_secs(600);
/// Where cargo-fuzz keeps the inputs that broke a target.
const ARTIFACTS: &str = "artifacts";

/// How long.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
}

/// Runs every target, also where an earlier one found something.
///
/// # Errors
/// A tool that is missing; or the targets that found something.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = repository::root().join("tests/fuzz");
    let targets = targets(&folder)?;
    check_tools()?;
    let mut broken = Vec::new();
    for target in &targets {
        println!("\n== {target}: {} s", options.seconds);
        if let Err(error) = fuzz(&folder, target, options.seconds) {
            crate::interrupt::check()?;
            println!("{error:#}");
            broken.push(target.as_str());
        }
    }
    if !broken.is_empty() {
        bail!(
            "{} found something; the inputs are in {}",
            broken.join(", "),
            folder.join(ARTIFACTS).display()
        );
    }
    println!(
        "\n{} targets, {} s each, nothing found",
        targets.len(),
        options.seconds
    );
    Ok(())
}

/// The names of the targets, in order.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let sources = folder.join("fuzz_targets");
    let mut names: Vec<String> = fs::read_dir(&sources)
        .with_context(|| format!("{} cannot be read", sources.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    if names.is_empty() {
        bail!("there is no fuzz target in {}", sources.display());
    }
    Ok(names)
}

fn check_tools() -> Result<()> {
    for (arguments, install) in [
        (
            ["+nightly", "--version"],
            "rustup toolchain install nightly",
        ),
        (["fuzz", "--version"], "cargo install --locked cargo-fuzz"),
    ] {
        // `cargo` by name: only rustup's understands `+nightly`.
        let there = Command::new("cargo")
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !there {
            bail!("`cargo {}` does not work; {install}", arguments.join(" "));
        }
    }
    Ok(())
}

/// Runs one target. The inputs that it finds go to a folder below `target`, beside the committed
/// corpus: that one grows when a person picks from it.
fn fuzz(folder: &Path, target: &str, seconds: u32) -> Result<()> {
    let found: PathBuf = repository::target().join("fuzz-corpus").join(target);
    fs::create_dir_all(&found).with_context(|| format!("{} cannot be made", found.display()))?;
    let committed = folder.join("corpus").join(target);
    let words = folder.join(target).with_extension("dict");
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "fuzz", "run", "--fuzz-dir"])
        .arg(folder)
        .arg(target)
        .arg(&found)
        .args(committed.is_dir().then_some(&committed))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .args(
            words
                .is_file()
                .then(|| format!("-dict={}", words.display())),
        )
        .current_dir(repository::root());
    let deadline = Instant::now() + Duration::from_secs(seconds.into()) + MARGIN;
    process::run(&mut command, Some(deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_are_the_sources_by_name() {
        let folder = tempfile::tempdir().unwrap();
        assert!(targets(folder.path()).is_err());
        fs::create_dir(folder.path().join("fuzz_targets")).unwrap();
        assert!(targets(folder.path()).is_err());
        for file in ["b.rs", "a.rs", "notes.md"] {
            fs::write(folder.path().join("fuzz_targets").join(file), "").unwrap();
        }
        assert_eq!(targets(folder.path()).unwrap(), ["a", "b"]);
    }
}
