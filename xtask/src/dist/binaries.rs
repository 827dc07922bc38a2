//! The library and the command: built so that an old C library is enough, without debug information.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use heapwarden_harness::python::Environment;
use heapwarden_harness::repository;

use super::elf::Needs;
use crate::{process, tools};

/// The tools that link against stubs of any glibc. Pinned: they are a part of what makes the bytes.
const ZIG: Environment = Environment {
    name: "zig",
    packages: &["ziglang==0.15.2", "cargo-zigbuild==0.24.1"],
};

/// The oldest glibc that Rust's own standard library runs with.
const TARGET: &str = "x86_64-unknown-linux-gnu.2.17";

/// The built files that are packed.
pub(super) struct Binaries {
    pub(super) library: Vec<u8>,
    pub(super) command: Vec<u8>,
    /// Manual pages by name, as the command writes them.
    pub(super) pages: Vec<(String, Vec<u8>)>,
    /// Completions for bash, zsh and fish.
    pub(super) completions: [Vec<u8>; 3],
}

/// Builds both for glibc 2.17.
pub(super) fn portable() -> Result<Binaries> {
    let zig = ZIG.install()?;
    let target = repository::target().join("portable");
    let cache = repository::tools().join("zig-cache");
    let mut path = vec![zig.join("bin")];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["zigbuild", "--release", "--locked", "--target", TARGET])
        .args(["--package", "policy-agent", "--package", "policy-cli"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(repository::root())
        .env("PATH", std::env::join_paths(path)?)
        .env("CARGO_ZIGBUILD_CACHE_DIR", &cache)
        .env("ZIG_GLOBAL_CACHE_DIR", &cache)
        .env("ZIG_LOCAL_CACHE_DIR", &cache)
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", remapped(&target)?);
    println!("building for glibc 2.17, in {}", target.display());
    process::run(&mut command, None)?;
    Binaries::read(&target.join("x86_64-unknown-linux-gnu/release"))
}

/// Flags that keep the paths of this machine out of messages and bytes.
fn remapped(target: &Path) -> Result<String> {
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let cargo = std::env::var_os("CARGO_HOME")
        .map_or_else(|| PathBuf::from(home).join(".cargo"), PathBuf::from);
    let mut registry = cargo.join("registry/src");
    // Its only folder is named after the registry.
    if let Some(Ok(only)) = fs::read_dir(&registry).ok().and_then(|mut all| all.next()) {
        registry = only.path();
    }
    Ok([
        (repository::root(), "/heapwarden"),
        (target, "/heapwarden/target"),
        (&cargo, "/cargo"),
        (&registry, "/cargo/crates"),
    ]
    .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
    .join(" "))
}

impl Binaries {
    /// Takes what was built in a folder.
    ///
    /// # Errors
    /// What is not there, or cannot be run here.
    pub(super) fn read(folder: &Path) -> Result<Binaries> {
        let folder = std::path::absolute(folder)?;
        let work = tempfile::tempdir().context("no temporary folder")?;
        let library = stripped(&folder.join("libheapwarden.so"), work.path())?;
        let built = folder.join("heapwarden");
        let command = stripped(&built, work.path())?;
        let pages = work.path().join("pages");
        fs::create_dir(&pages)?;
        process::run(Command::new(&built).arg("manual").arg(&pages), None)?;
        let mut named = Vec::new();
        for page in super::files::files_below(&pages)? {
            named.push((page.display().to_string(), fs::read(pages.join(&page))?));
        }
        let completions = |shell: &str| -> Result<Vec<u8>> {
            let output = Command::new(&built)
                .args(["completions", shell])
                .output()
                .with_context(|| format!("{} cannot be started", built.display()))?;
            anyhow::ensure!(output.status.success(), "no completions for {shell}");
            Ok(output.stdout)
        };
        Ok(Binaries {
            library,
            command,
            pages: named,
            completions: [
                completions("bash")?,
                completions("zsh")?,
                completions("fish")?,
            ],
        })
    }

    /// Returns the libraries and the glibc that library and command need of the system.
    pub(super) fn needs(&self) -> Result<Needs> {
        Ok(Needs::of(&self.library)?.and(Needs::of(&self.command)?))
    }
}

/// The file without debug information, which is three quarters of it.
fn stripped(file: &Path, work: &Path) -> Result<Vec<u8>> {
    let copy = work.join(file.file_name().context("no file name")?);
    let mut command = Command::new(tools::objcopy()?);
    command.arg("--strip-debug").arg(file).arg(&copy);
    process::run(&mut command, None)?;
    fs::read(&copy).with_context(|| format!("{} cannot be read", copy.display()))
}
