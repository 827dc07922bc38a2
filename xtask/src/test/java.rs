//! The Maven projects: each built and tested by `mvn verify`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use heapwarden_harness::repository;

use super::context::Context;
use super::runner::Summary;
use crate::{process, tools};

/// The Java API.
const API: &str = "java-api";

/// Folders that are, or may become, Maven projects.
const PROJECTS: [&str; 3] = [API, "examples/servlet", "examples/demo"];

/// Verifies every project that is there.
pub(super) fn verify(context: &Context, summaries: &mut Vec<Summary>) -> Result<()> {
    let mut failed = Vec::new();
    for project in PROJECTS {
        let folder = repository::root().join(project);
        if !folder.join("pom.xml").is_file() {
            println!("{project}: not there");
            continue;
        }
        let mut found = Vec::new();
        let result = maven(context, project, &folder, &mut found);
        let ran = found.iter().any(|summary: &Summary| summary.passed > 0);
        summaries.append(&mut found);
        match result {
            Ok(()) if ran => {}
            Ok(()) => failed.push(format!("{project}: not one test ran")),
            Err(error) => failed.push(format!("{project}: {error:#}")),
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}

/// Runs Maven: what a reader needs goes to the terminal, all of it into a file.
fn maven(
    context: &Context,
    project: &str,
    folder: &Path,
    summaries: &mut Vec<Summary>,
) -> Result<()> {
    let logs = repository::target().join("xtask");
    std::fs::create_dir_all(&logs).context("target/xtask cannot be made")?;
    let log = logs.join(format!("mvn-{}.log", project.replace('/', "-")));
    let mut file =
        File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
    println!("{project} (all of Maven's output: {})", log.display());
    let mut command = Command::new(tools::maven()?);
    command
        .args([
            "--batch-mode",
            "--no-transfer-progress",
            "-Dstyle.color=never",
            "verify",
        ])
        .args(agent(project)?)
        .current_dir(folder)
        .env("JAVA_HOME", &tools::for_builds(&context.jdks)?.home);
    process::run_lines(&mut command, Some(context.deadline), |line| {
        // The log is for people: where it cannot be written, the run goes on.
        let _ = writeln!(file, "{line}");
        if is_telling(line) {
            println!("{line}");
        }
        summaries.extend(Summary::parse(line));
    })
}

/// The Java API is tested without the agent and, told where it is, with it.
fn agent(project: &str) -> Result<Option<String>> {
    if project != API {
        return Ok(None);
    }
    let library = repository::agent();
    if !library.is_file() {
        bail!(
            "{} is not there: run `cargo build --release` first",
            library.display()
        );
    }
    Ok(Some(format!("-Dheapwarden.agent={}", library.display())))
}

fn is_telling(line: &str) -> bool {
    ["[ERROR]", "[WARNING]"]
        .iter()
        .any(|level| line.starts_with(level))
        || ["Tests run:", "BUILD ", "] Building "]
            .iter()
            .any(|part| line.contains(part))
}
