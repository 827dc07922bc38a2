//! `cargo xtask classes`: compiles the agent's Java sources into the class files that lie beside
//! them, which Cargo builds into the agent. To be run, and the result committed, after a change;
//! `tests/tests/errors.rs` fails until that is done.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, tools, workspace};

/// Compiles them anew.
pub(crate) fn run() -> Result<()> {
    let java = workspace::root().join("policy-agent/java");
    let sources = java.join("dev/heapwarden");
    let classes = java.join("classes");
    let jdks = tools::jdks()?;
    // Every javac gives the same bytes; the tests hold each to that.
    let compiler = jdks[0].program("javac")?;
    if classes.exists() {
        fs::remove_dir_all(&classes)
            .with_context(|| format!("{} cannot be removed", classes.display()))?;
    }
    let mut command = Command::new(compiler);
    command
        .args([
            "--release",
            "11",
            "-g:source,lines",
            "-Xlint:all",
            "-Werror",
        ])
        .arg("-d")
        .arg(&classes);
    for entry in
        fs::read_dir(&sources).with_context(|| format!("{} cannot be read", sources.display()))?
    {
        command.arg(entry?.path());
    }
    process::run(&mut command, None)?;
    println!("compiled into {}", classes.display());
    Ok(())
}
