//! Builds for the benchmarks, made before anything is measured: the agent, small C agents, Java programs.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use heapwarden_harness::repository::target;

use crate::jdk::Jdk;

pub(crate) use heapwarden_harness::repository::root;

/// An empty folder for a benchmark's own files, under the target folder.
pub(crate) fn fresh_folder(bench: &str) -> Result<PathBuf> {
    let folder = target().join("bench").join(bench);
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("{} cannot be emptied", folder.display()));
        }
        _ => {}
    }
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

/// The agent's library at `chosen`, or one that is built now: see [`agent`].
pub(crate) fn agent_or(chosen: Option<&Path>, folder: &Path) -> Result<PathBuf> {
    match chosen {
        Some(path) => path
            .canonicalize()
            .with_context(|| format!("{} is not there", path.display())),
        None => agent(folder),
    }
}

/// Builds the agent for release and returns a copy of it in `folder`: a build that somebody
/// starts meanwhile must not change what is measured.
pub(crate) fn agent(folder: &Path) -> Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--release", "--package", "policy-agent"])
        .current_dir(root());
    run(&mut cargo, "it comes with Rust: https://rustup.rs")?;
    let built = heapwarden_harness::repository::agent();
    let copy = folder.join("libheapwarden.so");
    std::fs::copy(&built, &copy)
        .with_context(|| format!("{} cannot be copied", built.display()))?;
    Ok(copy)
}

/// Builds the `heapwarden` command for release.
pub(crate) fn command() -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--release", "--package", "policy-cli"])
        .current_dir(root());
    run(&mut cargo, "it comes with Rust: https://rustup.rs")
}

/// Compiles `bench/c/NAME.c` to a shared library in `folder`.
pub(crate) fn c_agent(jdk: &Jdk, name: &str, folder: &Path) -> Result<PathBuf> {
    let library = folder.join(format!("{name}.so"));
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]);
    for include in jdk.includes() {
        cc.arg("-I").arg(include);
    }
    cc.arg("-o")
        .arg(&library)
        .arg(root().join("bench/c").join(format!("{name}.c")))
        .arg("-ldl");
    run(
        &mut cc,
        "on Debian and Ubuntu: apt-get install -y gcc libc6-dev",
    )?;
    Ok(library)
}

/// Compiles all programs of `bench/java/PACKAGE` and below, and `generated` ones given as (path, text),
/// to classes in a folder that is returned.
pub(crate) fn java(
    jdk: &Jdk,
    package: &str,
    generated: &[(String, String)],
    folder: &Path,
) -> Result<PathBuf> {
    let classes = folder.join("classes");
    let mut javac = Command::new(jdk.program("javac"));
    javac.args(["--release", "17", "-Xlint:all", "-Werror", "-d"]);
    javac.arg(&classes);
    javac.args(sources(&root().join("bench/java").join(package))?);
    for (path, text) in generated {
        let path = folder.join("generated").join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(&path, text)?;
        javac.arg(path);
    }
    run(
        &mut javac,
        "on Debian and Ubuntu: apt-get install -y openjdk-17-jdk-headless",
    )?;
    Ok(classes)
}

/// Builds the Maven project `bench/java/PROJECT` and all that it is made of; no tests.
pub(crate) fn maven(project: &str) -> Result<()> {
    let mut mvn = Command::new("mvn");
    mvn.args([
        "--batch-mode",
        "--quiet",
        "-Dmaven.test.skip=true",
        "clean",
        "package",
    ])
    .current_dir(root().join("bench/java").join(project));
    run(&mut mvn, "on Debian and Ubuntu: apt-get install -y maven")
}

/// The Java files of a folder and the folders below.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("{} cannot be read", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// A chain of calls, `depth` frames deep with the two below it, whose last one allocates; it
/// implements the `Chain` of a package.
pub(crate) fn chain_source(package: &str, depth: usize) -> (String, String) {
    /// `main`, the loop and the chain's own `run`.
    const OTHER_FRAMES: usize = 3;
    let links = depth.saturating_sub(OTHER_FRAMES).max(1);
    let name = format!("Depth{depth:03}_000000");
    let mut text = format!(
        "package chain;\n\n\
         public final class {name} implements {package}.Chain {{\n\
         \x20   @Override public Object run(int bytes) {{ return link1(bytes); }}\n"
    );
    for link in 1..links {
        let next = link + 1;
        let _ = writeln!(
            text,
            "    private static Object link{link}(int bytes) {{ return link{next}(bytes); }}"
        );
    }
    let _ = writeln!(
        text,
        "    private static Object link{links}(int bytes) {{ return new byte[bytes]; }}\n}}"
    );
    (format!("chain/{name}.java"), text)
}

fn run(command: &mut Command, how_to_install: &str) -> Result<()> {
    output(command, how_to_install).map(drop)
}

/// Runs a program to its good end; what it printed.
///
/// # Errors
/// Where it is missing, with how to install it, or fails, with what it said.
pub(crate) fn output(command: &mut Command, how_to_install: &str) -> Result<String> {
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let output = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("{name} is missing; {how_to_install}")
        }
        other => other.with_context(|| format!("{name} cannot be started"))?,
    };
    if !output.status.success() {
        bail!(
            "{name} failed ({}):\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_the_depth_it_is_named_after() {
        let (path, text) = chain_source("micro", 5);
        assert_eq!(path, "chain/Depth005_000000.java");
        assert!(
            text.contains("link2(int bytes) { return new byte"),
            "{text}"
        );
        assert!(!text.contains("link3"), "{text}");
    }

    #[test]
    fn a_missing_program_is_named_with_what_installs_it() {
        let error = run(&mut Command::new("no-such-compiler"), "do this").unwrap_err();
        assert_eq!(error.to_string(), "no-such-compiler is missing; do this");
    }
}
