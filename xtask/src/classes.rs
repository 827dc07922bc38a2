//! `cargo xtask classes`: compiles the Java that the agent defines in the boot loader into class
//! files, which Cargo builds into the agent. To be run, and the result committed, after a change;
//! `tests/tests/error_classes.rs` fails until that is done.
//!
//! There are three sets of sources. The errors belong to the Java API, whose copies may be loaded
//! from anywhere. `policy-agent/java` has the part of the API that exists once in a JVM, and the guard
//! that the agent defines in the class loader of each container. `policy-agent/java.base` has what it adds
//! to `java.lang`, which no other sources may be compiled with.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use heapwarden_harness::repository;

use crate::{process, tools};

/// The classes of the API that the agent defines, and what they are made of.
const ERRORS: [&str; 5] = [
    "AllocationRefusedError",
    "MemoryQuotaExceeded",
    "MemoryQuotaExceededError",
    "MemoryQuotaExceededException",
    "QuotaMessage",
];

/// The packages below `dev.heapwarden` whose sources the agent has.
const PACKAGES: [&str; 2] = ["agent", "door"];

/// Compiles them anew.
pub(crate) fn run() -> Result<()> {
    let root = repository::root();
    let classes = root.join("policy-agent/java/classes");
    let jdks = tools::jdks()?;
    // Every javac gives the same bytes; the tests hold each to that.
    let compiler = tools::for_builds(&jdks)?.program("javac");
    if classes.exists() {
        fs::remove_dir_all(&classes)
            .with_context(|| format!("{} cannot be removed", classes.display()))?;
    }
    let errors = root.join("java-api/heapwarden-api/src/main/java/dev/heapwarden");
    let mut command = javac(&compiler, "11", &classes);
    command.args(ERRORS.map(|name| errors.join(name).with_extension("java")));
    process::run(&mut command, None)?;

    let mut command = javac(&compiler, "17", &classes);
    for package in PACKAGES {
        let sources = root.join("policy-agent/java/dev/heapwarden").join(package);
        for entry in fs::read_dir(&sources)
            .with_context(|| format!("{} cannot be read", sources.display()))?
        {
            command.arg(entry?.path());
        }
    }
    process::run(&mut command, None)?;

    // A class of java.lang may be compiled as a patch of its module only, which `--release` does not allow.
    let patch = root.join("policy-agent/java.base");
    let mut command = Command::new(&compiler);
    command
        .args(["-source", "17", "-target", "17", "-g:source,lines"])
        .args(["-XDstringConcat=inline", "-Xlint:all,-options", "-Werror"])
        .arg("--patch-module")
        .arg(format!("java.base={}", patch.display()))
        .arg("-d")
        .arg(&classes);
    let java_lang = patch.join("java/lang");
    for entry in fs::read_dir(&java_lang)
        .with_context(|| format!("{} cannot be read", java_lang.display()))?
    {
        command.arg(entry?.path());
    }
    process::run(&mut command, None)?;
    println!("compiled into {}", classes.display());
    Ok(())
}

fn javac(compiler: &Path, release: &str, classes: &Path) -> Command {
    let mut command = Command::new(compiler);
    command
        .args(["--release", release, "-g:source,lines"])
        // Compiled concatenation would link method handles on threads of the program.
        .args(["-XDstringConcat=inline", "-Xlint:all", "-Werror", "-d"])
        .arg(classes);
    command
}
