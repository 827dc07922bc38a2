//! The steps of `cargo xtask test`, in the order in which they run.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};
use heapwarden_harness::repository;

use super::context::{Context, cargo};
use super::runner::{self, Summary};
use super::{binaries, docs, java};
use crate::{demo, process};

/// One step.
pub(super) struct Step {
    /// Its name, for `--only` and the table.
    pub(super) name: &'static str,
    /// The subject that it checks, for the reader of the output.
    pub(super) does: &'static str,
    /// Whether `--quick` leaves it out.
    pub(super) slow: bool,
    /// Does it, and adds what test runners said.
    pub(super) run: fn(&Context, &mut Vec<Summary>) -> Result<()>,
}

/// All of them.
pub(super) const STEPS: [Step; 9] = [
    Step {
        name: "fmt",
        does: "the code is formatted",
        slow: false,
        run: fmt,
    },
    Step {
        name: "clippy",
        does: "no warning of the lints",
        slow: false,
        run: clippy,
    },
    Step {
        name: "doc",
        does: "the documentation builds without a warning",
        slow: false,
        run: doc,
    },
    Step {
        name: "docs",
        does: "links between the documents resolve",
        slow: false,
        run: docs::check,
    },
    Step {
        name: "build",
        does: "the agent and the command",
        slow: false,
        run: build,
    },
    Step {
        name: "test",
        does: "units, properties, fuzz corpora, the command, real JVMs",
        slow: false,
        run: test,
    },
    Step {
        name: "loom",
        does: "models of the ledger, the gate and the admission: every interleaving",
        slow: true,
        run: loom,
    },
    Step {
        name: "java",
        does: "the Java modules",
        slow: false,
        run: java::verify,
    },
    Step {
        name: "demo",
        does: "a real Tomcat: account against truth, a refusal, an edit of the policy",
        slow: true,
        run: run_demo,
    },
];

/// An error that names the steps, where one is asked for that does not exist.
pub(super) fn check_names(only: &[String]) -> Result<()> {
    for name in only {
        if !STEPS.iter().any(|step| step.name == name) {
            let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
            bail!(
                "there is no step {name:?}; the steps are {}",
                names.join(", ")
            );
        }
    }
    Ok(())
}

fn fmt(context: &Context, _: &mut Vec<Summary>) -> Result<()> {
    process::run(
        &mut cargo(&["fmt", "--all", "--check"]),
        Some(context.deadline),
    )
}

fn clippy(context: &Context, _: &mut Vec<Summary>) -> Result<()> {
    process::run(
        &mut cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
        Some(context.deadline),
    )
}

fn doc(context: &Context, _: &mut Vec<Summary>) -> Result<()> {
    process::run(
        cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
        Some(context.deadline),
    )
}

fn build(context: &Context, _: &mut Vec<Summary>) -> Result<()> {
    process::run(&mut cargo(&["build", "--release"]), Some(context.deadline))
}

fn test(context: &Context, summaries: &mut Vec<Summary>) -> Result<()> {
    let begun = Instant::now();
    let built = binaries::build(context)?;
    println!("built in {:.0} s", begun.elapsed().as_secs_f64());
    let mut documented = cargo(&["test", "--workspace", "--doc", "--profile", "checks"]);
    let examples = run_tests(&mut documented, context, summaries);
    binaries::run(context, built, summaries)?;
    examples?;
    if summaries.iter().all(|summary| summary.passed == 0) {
        bail!("not one test ran");
    }
    Ok(())
}

fn loom(context: &Context, summaries: &mut Vec<Summary>) -> Result<()> {
    let folder = repository::target().join("loom");
    let mut command = cargo(&["test", "--package", "policy-core", "--lib"]);
    command
        .args(["--profile", "checks"])
        .arg("--target-dir")
        .arg(folder)
        .args(["--", "models"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("LOOM_MAX_PREEMPTIONS", "3");
    run_tests(&mut command, context, summaries)?;
    if summaries.iter().all(|summary| summary.passed == 0) {
        bail!("not one test ran");
    }
    Ok(())
}

/// Runs tests with Cargo, shows what they print and keeps their summaries.
fn run_tests(command: &mut Command, context: &Context, summaries: &mut Vec<Summary>) -> Result<()> {
    let mut failed = Vec::new();
    let result = process::run_lines(command, Some(context.deadline), |line| {
        println!("{line}");
        summaries.extend(Summary::parse(line));
        failed.extend(runner::failed_test(line).map(str::to_owned));
    });
    if !failed.is_empty() {
        bail!(
            "{} tests failed:\n    {}",
            failed.len(),
            failed.join("\n    ")
        );
    }
    result
}

fn run_demo(_: &Context, _: &mut Vec<Summary>) -> Result<()> {
    demo::run(&demo::Options::as_a_test())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_does_not_exist_is_answered_with_those_that_do() {
        check_names(&["fmt".to_owned(), "demo".to_owned()]).unwrap();
        let error = check_names(&["unit".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("fmt, clippy"), "{error}");
    }
}
